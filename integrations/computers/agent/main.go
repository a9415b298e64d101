// Sockets of MPTCP gain nothing on loopback.
//go:debug multipathtcp=0

// The agent is the first program in a sandbox. It carries out its holder's requests there, which come over its standard
// input (../protocol). It ends when that ends, and everything else in the sandbox ends with it.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
)

const (
	// The largest pid that the agent can have in a sandbox: only the first process and a shell start before it.
	firstPids = 9
	// How many goroutines may be in a slow system call at once.
	maxSlowCalls = 3
	// Enough threads for that and for Go itself. A private process has an agent of its own, whose threads count as tasks
	// of its computer.
	threads     = maxSlowCalls + 3
	memoryBytes = 64 << 20
	// As shells say that a command cannot be run.
	commandFailed = 126
)

// A request of the holder (protocol/agentRequests.ts): `Kind` says which of the fields it has.
type request struct {
	Kind string
	processRequest
	fileRequest
	Signal         string
	Cols, Rows     uint16
	Port           int
	Ports          []int
	MaxConnections int
}

// A refusal has the code that the caller gets.
type refusal string

func (r refusal) Error() string { return string(r) }

func main() {
	if len(os.Args) > 1 {
		if err := runCommand(os.Args[1], os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(commandFailed)
		}
		return
	}
	closeStrayDescriptors()
	boundCapabilities()
	// Set our own mask instead of inheriting the one of the process that started the sandbox.
	syscall.Umask(0o022)
	runtime.GOMAXPROCS(1)
	debug.SetMemoryLimit(memoryBytes)
	startThreads()
	go children.reap()
	holder := newChannel()
	programs := &processes{running: map[string]*process{}}
	holder.onOpen = func(s *stream, payload []byte) {
		var asked request
		if json.Unmarshal(payload, &asked) != nil {
			s.Close()
			return
		}
		if asked.Kind == "network" {
			// The next process that starts finds the network.
			s.finish(map[string]any{"faults": startNetwork(holder, asked.Ports, asked.MaxConnections)})
			return
		}
		go serve(programs, s, &asked)
	}
	holder.open(map[string]string{"kind": "ready"}).CloseWrite()
	go func() {
		holder.write(withoutThread(1))
		endAll()
	}()
	holder.read(withoutThread(0))
	endAll()
}

// runCommand does one thing instead of being an agent.
func runCommand(name string, arguments []string) error {
	switch {
	case name == mountCommand:
		return mountMapped(arguments)
	case name == pauseCommand:
		pause()
		return nil
	case name == usersCommand && len(arguments) > 1:
		return runAsUsers(arguments[0], arguments[1:])
	case name == sealCommand && len(arguments) > 1:
		return seal(arguments[0], arguments[1:])
	case name == asCommand && len(arguments) > 1:
		return runAs(arguments[0], arguments[1:])
	case name == movedAsCommand && len(arguments) > 1:
		awaitCgroup()
		return runAs(arguments[0], arguments[1:])
	}
	return refusal("COMMAND_NOT_FOUND")
}

func serve(programs *processes, s *stream, asked *request) {
	answer, err := take(programs, s, asked)
	if err != nil {
		answer = map[string]string{"refused": codeOf(err)}
	}
	if answer != nil {
		s.finish(answer)
	}
	io.Copy(io.Discard, s)
}

// take returns the answer to a request. It returns nil if the request has answered by itself.
func take(programs *processes, s *stream, asked *request) (any, error) {
	switch asked.Kind {
	case "process":
		return nil, programs.start(&asked.processRequest, s)
	case "signal":
		return slowly(func() (any, error) {
			return map[string]int{"signalled": programs.signal(asked.ProcessID, asked.Signal)}, nil
		})
	case "resize":
		return struct{}{}, programs.resize(asked.ProcessID, size{asked.Cols, asked.Rows})
	case "ping":
		return struct{}{}, nil
	case "port":
		return nil, dialPort(asked.Port, s)
	case "socket":
		return nil, dialSocket(asked.Path, s)
	}
	return takeFileRequest(&asked.fileRequest, asked.Kind, s)
}

func codeOf(err error) string {
	var code refusal
	if errors.As(err, &code) {
		return string(code)
	}
	var number syscall.Errno
	if errors.As(err, &number) && fileCodes[number] != "" {
		return fileCodes[number]
	}
	return "AGENT_FAILED"
}

// endAll kills every process in the sandbox, because its first process waits for all of them to end. It does so only if
// the agent is one of the sandbox's first processes: elsewhere kill(-1) would end everything on the machine.
func endAll() {
	for round := 0; round < 1_000 && os.Getpid() <= firstPids; round++ {
		if syscall.Kill(-1, syscall.SIGKILL) != nil {
			break // nothing else runs
		}
	}
	os.Exit(0)
}

// closeStrayDescriptors closes inherited descriptors, for example of the process that started the host. Programs that
// we start would inherit them too. Go opens its own descriptors with close-on-exec.
func closeStrayDescriptors() {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		fd, _ := strconv.Atoi(entry.Name())
		if flags, _, err := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0); fd > 2 && err == 0 &&
			flags&syscall.FD_CLOEXEC == 0 {
			syscall.Close(fd)
		}
	}
}

// startThreads makes Go start its threads before any program runs, and Go keeps them. It aborts if it cannot make one
// when it needs it, for example beside a fork bomb. A goroutine that waits in the kernel keeps its thread, so the next
// one gets another.
func startThreads() {
	var ends [2]int
	if syscall.Pipe2(ends[:], syscall.O_CLOEXEC) != nil {
		return
	}
	var started, done sync.WaitGroup
	started.Add(threads)
	done.Add(threads)
	for range threads {
		go func() {
			started.Done()
			syscall.Read(ends[0], make([]byte, 1))
			done.Done()
		}()
	}
	started.Wait()
	syscall.Close(ends[1])
	done.Wait()
	syscall.Close(ends[0])
}

// withoutThread returns a descriptor of ours as a file. While we wait for it, we need no thread.
func withoutThread(fd int) *os.File {
	syscall.SetNonblock(fd, true)
	return os.NewFile(uintptr(fd), "descriptor")
}

var slowCalls = make(chan struct{}, maxSlowCalls)

// slowly does work that may wait in the kernel, mostly for the disk. Each call that waits has a thread.
func slowly[T any](work func() (T, error)) (T, error) {
	slowCalls <- struct{}{}
	defer func() { <-slowCalls }()
	return work()
}
