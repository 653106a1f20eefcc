//go:build !linux

package etcdtest

import "syscall"

func ended() *syscall.SysProcAttr { return nil }
