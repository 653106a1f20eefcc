package testbed

import "syscall"

// killWithParent makes the kernel kill a process when the test process dies.
func killWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
