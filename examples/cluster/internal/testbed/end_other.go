//go:build !linux

package testbed

import "syscall"

func killWithParent() *syscall.SysProcAttr { return nil }
