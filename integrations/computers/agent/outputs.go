package main

import (
	"encoding/json"
	"errors"
	"io"
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
	stream  *stream
	sources []*os.File
	open    sync.WaitGroup

	mu          sync.Mutex
	gathered    []piece
	bytes       int
	isGathering bool
	toldAt      time.Time
}

type piece struct {
	kind    byte
	payload []byte
}

func (o *outputs) add(source *os.File, kind byte) {
	o.sources = append(o.sources, source)
	o.open.Add(1)
	go o.read(source, kind)
}

func (o *outputs) read(source *os.File, kind byte) {
	defer source.Close()
	buffer := make([]byte, maxMessageBytes)
	for {
		count, err := source.Read(buffer)
		o.hear(kind, buffer[:count])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			o.drain(source, kind, buffer)
			o.open.Done()
			io.Copy(io.Discard, source)
			return
		}
		if err != nil { // a terminal ends with EIO
			o.open.Done()
			return
		}
	}
}

// drain reads what is in the pipe now. All that the leader has written is in there.
func (o *outputs) drain(source *os.File, kind byte, buffer []byte) {
	source.SetReadDeadline(time.Time{})
	pipe, err := source.SyscallConn()
	if err != nil {
		return
	}
	pipe.Read(func(fd uintptr) bool {
		for left := pipeBytes; left > 0; {
			count, _ := syscall.Read(int(fd), buffer)
			if count <= 0 {
				break
			}
			o.hear(kind, buffer[:count])
			left -= count
		}
		return true
	})
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
	late := time.AfterFunc(lateAfter, func() {
		for _, source := range o.sources {
			source.SetReadDeadline(time.Now())
		}
	})
	o.open.Wait()
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
