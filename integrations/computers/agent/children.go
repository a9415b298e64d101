package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

const usualPath = "/usr/local/bin:/usr/bin:/bin"

// The programs that we have started and that have not ended. One goroutine waits for them all, so that none needs a
// thread. It also reaps orphans, if we are the sandbox's first process.
var children = &childTable{ends: map[int]chan syscall.WaitStatus{}}

type childTable struct {
	mu   sync.Mutex
	ends map[int]chan syscall.WaitStatus
}

// start starts a program. The channel gets its end.
func (t *childTable) start(command []string, attributes *syscall.ProcAttr) (int, <-chan syscall.WaitStatus, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	file, err := findProgram(command[0], attributes.Dir, variable(attributes.Env, "PATH"))
	if err != nil {
		return 0, nil, err
	}
	pid, err := fork(file, command, attributes)
	if errors.Is(err, syscall.ENOEXEC) {
		// A script without a first line that names its interpreter.
		script := append([]string{"/bin/sh", file}, command[1:]...)
		pid, err = fork(script[0], script, attributes)
	}
	if err != nil {
		return 0, nil, err
	}
	end := make(chan syscall.WaitStatus, 1)
	t.ends[pid] = end
	return pid, end, nil
}

func fork(file string, command []string, attributes *syscall.ProcAttr) (int, error) {
	return slowly(func() (int, error) {
		pid, err := syscall.ForkExec(file, command, attributes)
		if err == nil {
			// The OOM killer takes this process before the agent. Its children inherit this.
			os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("500"), 0)
		}
		return pid, err
	})
}

// reap waits for children for ever.
func (t *childTable) reap() {
	signals := make(chan os.Signal, 1)
	// Without a receiver of SIGPIPE, Go ends when the holder does not read any more, before `endAll`.
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGPIPE)
	for range signals {
		t.reapNow()
	}
}

func (t *childTable) reapNow() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if pid <= 0 {
			return
		}
		if end := t.ends[pid]; end != nil {
			delete(t.ends, pid)
			end <- status
		}
	}
}

// findProgram looks for a program as a shell does. A name with a slash is not looked for.
func findProgram(name, folder, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	if path == "" {
		path = usualPath
	}
	var failure error = syscall.ENOENT
	for _, each := range filepath.SplitList(path) {
		if !strings.HasPrefix(each, "/") {
			each = folder + "/" + each
		}
		file := each + "/" + name
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		const execute = 1
		if syscall.Access(file, execute) == nil {
			return file, nil
		}
		failure = syscall.EACCES
	}
	return "", failure
}

// variable returns the value of a variable, or nothing.
func variable(environment []string, name string) string {
	for _, each := range environment {
		if value, isIt := strings.CutPrefix(each, name+"="); isIt {
			return value
		}
	}
	return ""
}

// pipe returns our end of a new pipe, which reads or writes, and the child's end, which blocks as programs expect.
func pipe(ours int) (*os.File, uintptr, error) {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		return nil, 0, err
	}
	syscall.SetNonblock(ends[ours], true)
	return os.NewFile(uintptr(ends[ours]), "pipe"), uintptr(ends[1-ours]), nil
}

// Our end of a pipe.
const (
	reads  = 0
	writes = 1
)
