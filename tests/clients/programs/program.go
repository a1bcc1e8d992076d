// Speaks the line protocol of ../languages.py with the client for Go: program SOCKET ELECTION
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"gavel"
)

func nowNs() int64 {
	var t syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 7, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

func text(token uint64) string {
	if token == 0 {
		return "-"
	}
	return fmt.Sprint(token)
}

var finish = make(chan struct{}, 1)
var goOn = make(chan struct{}, 1) // onRevoke may return

func revoked(token uint64) {
	fmt.Println("revoked", token, nowNs())
	if os.Getenv("SLOW") != "" {
		<-goOn
	}
}

func churn(g *gavel.Gavel) {
	var all sync.WaitGroup
	for i := 0; i < 4; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := 0; i < 25; i++ {
				g.Attach(revoked)
				g.Detach()
			}
		}()
	}
	all.Wait()
	fmt.Println("churned")
}

func work(ctx context.Context, token uint64) error {
	fmt.Println("started", token, nowNs())
	select {
	case <-ctx.Done():
		fmt.Println("cancelled", token, nowNs())
		<-finish
	case <-finish:
	}
	fmt.Println("stopped", token, nowNs())
	return nil
}

func main() {
	g := gavel.New(gavel.Options{Socket: os.Args[1], Election: os.Args[2]})
	ctx := context.Background()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch lines.Text() {
		case "is_leader":
			fmt.Println("is_leader", g.IsLeader())
		case "token":
			fmt.Println("token", text(g.Token()))
		case "require":
			if token, err := g.RequireLeader(); err != nil {
				fmt.Println("require not-leader")
			} else {
				fmt.Println("require", token)
			}
		case "watch":
			g.OnChange(ctx, func(leader bool, token uint64) {
				fmt.Println("change", leader, text(token))
			})
		case "attach":
			g.Attach(revoked)
		case "detach":
			g.Detach()
			fmt.Println("detached")
		case "run":
			go func() {
				if err := g.Run(ctx, work); err != nil {
					fmt.Println("refused", err)
				} else {
					fmt.Println("returned")
				}
			}()
		case "finish":
			finish <- struct{}{}
		case "go":
			goOn <- struct{}{}
		case "churn":
			churn(g)
		}
	}
}
