package etcdtest

import "syscall"

// ended makes the kernel end a process when the test's own process dies.
func ended() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
