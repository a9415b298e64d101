package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
)

type processRequest struct {
	ProcessID string
	Command   command
	Cwd       string
	Env       map[string]string
	Pty       *size
	Input     bool
	Files     *expectedFiles
	// The user that runs it. Empty: the agent's own.
	User string
	// Whether the holder moves it to another cgroup.
	IsMoved bool
}

// A command line, or a text for the shell.
type command []string

func (c *command) UnmarshalJSON(text []byte) error {
	var line string
	if json.Unmarshal(text, &line) != nil {
		return json.Unmarshal(text, (*[]string)(c))
	}
	*c = command{shell, "-c", line}
	return nil
}

var shell = func() string {
	if _, err := os.Stat("/bin/bash"); err == nil {
		return "/bin/bash"
	}
	return "/bin/sh"
}()

// The processes that the holder has started.
type processes struct {
	mu      sync.Mutex
	running map[string]*process
}

// A process that runs. Without it, its pid may belong to another process.
type process struct {
	leader   int
	terminal *os.File
}

func (p *processes) get(id string) *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running[id]
}

// start starts a process, and sends its output, and at last its end, over the stream.
func (p *processes) start(asked *processRequest, s *stream) error {
	_, err := slowly(func() (struct{}, error) {
		info, err := os.Stat(asked.Cwd)
		if err != nil || !info.IsDir() {
			return struct{}{}, refusal("CWD_NOT_FOUND")
		}
		if asked.User != "" {
			_, err = findAccount(asked.User)
		}
		return struct{}{}, errors.Join(err, requireFiles(asked.Files))
	})
	if err != nil {
		return err
	}
	command := asked.Command
	if asked.User != "" {
		command = asUser(asked.User, asked.IsMoved, command)
	}
	attributes := &syscall.ProcAttr{Dir: asked.Cwd, Sys: &syscall.SysProcAttr{Setsid: true}}
	for name, value := range asked.Env {
		attributes.Env = append(attributes.Env, name+"="+value)
	}
	ends, err := connect(attributes, asked)
	var told *outputs
	if err == nil {
		told, err = newOutputs(s, ends.sources()...)
	}
	var pid int
	var ended <-chan syscall.WaitStatus
	if err == nil {
		pid, ended, err = children.start(command, attributes)
	}
	closeAll(attributes.Files)
	if err != nil {
		ends.close()
		if told != nil {
			told.poll.Close()
		}
		return startRefusal(err)
	}
	p.mu.Lock()
	p.running[asked.ProcessID] = &process{pid, ends.terminal}
	p.mu.Unlock()
	s.answer(map[string]int{"pid": pid})
	go told.read()
	go func() {
		status := <-ended
		p.mu.Lock()
		delete(p.running, asked.ProcessID)
		p.mu.Unlock()
		told.leaderEnded(status)
	}()
	feed(s, ends)
	return nil
}

// signal returns how many processes got the signal. It also signals processes that an ended process has left behind.
func (p *processes) signal(id, name string) int {
	leader := 0
	if running := p.get(id); running != nil {
		leader = running.leader
	}
	return signalTree(id, leader, signalNumber(name))
}

func (p *processes) resize(id string, to size) error {
	running := p.get(id)
	if running == nil || running.terminal == nil || resizeTerminal(running.terminal, to) != nil {
		return refusal("PROCESS_ENDED")
	}
	return nil
}

// Our ends of what a process reads and writes. They are pipes, so that it may open /dev/stdout, or one terminal.
type connections struct {
	in, out, err, terminal *os.File
}

func (c *connections) close() {
	for _, file := range []*os.File{c.in, c.out, c.err, c.terminal} {
		file.Close() // nothing happens to nil
	}
}

func (c *connections) sources() []source {
	if c.terminal != nil {
		return []source{{c.terminal, descriptorOf(c.terminal), ptyMessage}}
	}
	return []source{{c.out, descriptorOf(c.out), stdoutMessage}, {c.err, descriptorOf(c.err), stderrMessage}}
}

// descriptorOf returns the number of a file, which stays as it is. `Fd` would make it block.
func descriptorOf(file *os.File) (number int) {
	connection, err := file.SyscallConn()
	if err == nil {
		connection.Control(func(fd uintptr) { number = int(fd) })
	}
	return number
}

// connect opens what a process reads and writes. The caller closes the files in `attributes`.
func connect(attributes *syscall.ProcAttr, asked *processRequest) (*connections, error) {
	ours := &connections{}
	if asked.Pty != nil {
		master, slave, err := openTerminal(*asked.Pty)
		if err != nil {
			return ours, err
		}
		ours.terminal = master
		if _, isSet := asked.Env["TERM"]; !isSet {
			attributes.Env = append(attributes.Env, "TERM=xterm-256color")
		}
		if account, err := findAccount(asked.User); err == nil {
			syscall.Fchown(int(slave), account.user, -1)
		}
		attributes.Files = []uintptr{slave, slave, slave}
		attributes.Sys.Setctty = true
		return ours, nil
	}
	add := func(to **os.File, end int) error {
		file, theirs, err := pipe(end)
		if err == nil {
			*to = file
			attributes.Files = append(attributes.Files, theirs)
		}
		return err
	}
	in := func() error {
		if asked.Input {
			return add(&ours.in, writes)
		}
		null, err := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		attributes.Files = append(attributes.Files, uintptr(null))
		return err
	}
	return ours, errors.Join(in(), add(&ours.out, reads), add(&ours.err, reads))
}

func closeAll(files []uintptr) {
	for at, fd := range files {
		if at == 0 || fd != files[at-1] {
			syscall.Close(int(fd))
		}
	}
}

// feed passes the stream to the process. A pipe is closed at its end; a terminal gets Ctrl-D.
func feed(s *stream, to *connections) {
	if to.terminal != nil {
		if _, err := io.Copy(to.terminal, s); err == nil {
			to.terminal.Write([]byte{4})
		}
	} else if to.in != nil {
		io.Copy(to.in, s)
		to.in.Close()
	}
}

func startRefusal(err error) refusal {
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR):
		return "COMMAND_NOT_FOUND"
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EMFILE):
		return "TOO_MANY_TASKS"
	case errors.Is(err, syscall.E2BIG):
		return "COMMAND_TOO_LONG"
	}
	return "COMMAND_NOT_STARTED"
}
