module gavel

go 1.19
