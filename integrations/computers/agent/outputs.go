package main

import (
	"encoding/json"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// How long after the leader's end its output is waited for, if another process holds it open.
	lateAfter = 200 * time.Millisecond
	// Output that follows within this time is sent together. The first output after a quiet moment is sent at once.
	gatherFor = 4 * time.Millisecond
	// The order between the streams is kept up to this many changes of the stream in what is sent together. A program
	// cannot rely on it within a moment, and a flood of tiny writes must not become a flood of messages.
	maxTurns  = 4
	pipeBytes = 65_536
)

// The outputs of a process are sent over its stream, and then how it has ended: how its leader did. A background child
// may hold an output open. What it writes later is read and dropped, so that its writes do not fail.
type outputs struct {
	stream *stream
	// One poll for all sources of a process tells in which order they were written.
	poll    *os.File
	sources []source
	// Closed once all output of the leader has been heard.
	heard chan struct{}

	mu          sync.Mutex
	gathered    []piece
	bytes       int
	isGathering bool
	toldAt      time.Time
}

type source struct {
	file *os.File
	fd   int
	kind byte
}

type piece struct {
	kind    byte
	payload []byte
}

func newOutputs(s *stream, sources ...source) (*outputs, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	for at, each := range sources {
		event := &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(at)}
		if err == nil {
			err = syscall.EpollCtl(fd, syscall.EPOLL_CTL_ADD, each.fd, event)
		}
	}
	return &outputs{stream: s, poll: withoutThread(fd), sources: sources, heard: make(chan struct{})}, err
}

// read reads until all sources have ended.
func (o *outputs) read() {
	defer o.poll.Close()
	buffer := make([]byte, maxMessageBytes)
	isLate := false
	for open := len(o.sources); open > 0; {
		ready, err := o.wait()
		if err != nil { // the deadline
			o.drain(buffer)
			isLate = true
			close(o.heard)
		}
		for _, event := range ready {
			from := o.sources[event.Fd]
			if from.file == nil {
				continue // it has ended, and is being closed
			}
			count, err := syscall.Read(from.fd, buffer)
			if count > 0 && !isLate {
				o.hear(from.kind, buffer[:count])
			}
			if count == 0 || count < 0 && err != syscall.EAGAIN && err != syscall.EINTR { // a terminal ends with EIO
				from.file.Close()
				o.sources[event.Fd].file = nil
				open--
			}
		}
	}
	if !isLate {
		close(o.heard)
	}
}

// wait returns the sources that can be read, in the order in which they were written.
func (o *outputs) wait() ([]syscall.EpollEvent, error) {
	events := make([]syscall.EpollEvent, len(o.sources))
	count := 0
	poll, err := o.poll.SyscallConn()
	if err == nil {
		err = poll.Read(func(fd uintptr) bool {
			count, _ = syscall.EpollWait(int(fd), events, 0)
			return count > 0
		})
	}
	return events[:max(0, count)], err
}

// drain reads what is in the pipes now. All that the leader has written is in there.
func (o *outputs) drain(buffer []byte) {
	o.poll.SetReadDeadline(time.Time{})
	for _, from := range o.sources {
		for left := pipeBytes; left > 0 && from.file != nil; {
			count, _ := syscall.Read(from.fd, buffer)
			if count <= 0 {
				break
			}
			o.hear(from.kind, buffer[:count])
			left -= count
		}
	}
}

// hear sends output, or gathers it. It waits while the holder does not read, and the process waits at its full pipe.
func (o *outputs) hear(kind byte, payload []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gather(kind, payload)
	wait := gatherFor - time.Since(o.toldAt)
	if wait <= 0 || o.bytes >= maxMessageBytes {
		o.tell()
	} else if !o.isGathering && o.bytes > 0 {
		o.isGathering = true
		time.AfterFunc(wait, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.isGathering = false
			o.tell()
		})
	}
}

func (o *outputs) gather(kind byte, payload []byte) {
	o.bytes += len(payload)
	last := len(o.gathered) - 1
	if len(o.gathered) == maxTurns && o.gathered[last].kind != kind {
		last--
	}
	if last >= 0 && o.gathered[last].kind == kind {
		o.gathered[last].payload = append(o.gathered[last].payload, payload...)
	} else if len(payload) > 0 {
		o.gathered = append(o.gathered, piece{kind, append([]byte(nil), payload...)})
	}
}

// tell sends what was gathered.
func (o *outputs) tell() {
	if o.bytes == 0 {
		return
	}
	var messages []byte
	for _, each := range o.gathered {
		for at := 0; at < len(each.payload); at += maxMessageBytes {
			messages = appendMessage(messages, each.kind, each.payload[at:min(at+maxMessageBytes, len(each.payload))])
		}
	}
	o.gathered, o.bytes = nil, 0
	o.stream.Write(messages)
	o.toldAt = time.Now()
}

// leaderEnded sends the end once the leader's output has been sent.
func (o *outputs) leaderEnded(status syscall.WaitStatus) {
	late := time.AfterFunc(lateAfter, func() { o.poll.SetReadDeadline(time.Now()) })
	<-o.heard
	late.Stop()
	end := map[string]any{"exitCode": status.ExitStatus(), "signal": nil}
	if status.Signaled() {
		end = map[string]any{"exitCode": nil, "signal": signalName(status.Signal())}
	}
	payload, _ := json.Marshal(end)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tell()
	o.stream.Write(appendMessage(nil, exitMessage, payload))
	o.stream.CloseWrite()
}
