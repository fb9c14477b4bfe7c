package process

import "syscall"

// dieWithParent makes the kernel kill the process when the thread that started it ends.
func dieWithParent(attr *syscall.SysProcAttr) {
	attr.Pdeathsig = syscall.SIGKILL
}

// onMainThread says whether the calling goroutine runs on the process's first thread.
func onMainThread() bool {
	return syscall.Gettid() == syscall.Getpid()
}
