//go:build !linux

package etcdtest

import "syscall"

func killWithParent() *syscall.SysProcAttr { return nil }
