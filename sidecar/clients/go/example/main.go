package main

import (
	"fmt"
	"gavel"
)

func main() {
	g := gavel.New(gavel.Options{})
	if token, err := g.RequireLeader(); err == nil {
		fmt.Println("write with", token)
	}
}
