//go:build unix && !linux

package process

import "syscall"

// dieWithParent does nothing: only Linux can tie a process to its parent. Processes of a parent that was killed stay here.
func dieWithParent(*syscall.SysProcAttr) {}

// onMainThread does not matter here: no process ends with the thread that started it.
func onMainThread() bool {
	return false
}
