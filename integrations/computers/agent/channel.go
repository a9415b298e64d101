package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// Frames: ../protocol/frames.ts describes them.
const (
	openFrame = 1 + iota
	dataFrame
	endFrame
	resetFrame
	windowFrame
)

const (
	frameHeaderBytes = 9
	maxDataBytes     = 32_768
	// The holder bounds its requests. This only stops nonsense.
	maxFrameBytes = 8 << 20
	// Streams that send wait while more than this waits to be written.
	maxWaitingBytes = 65_536
)

// A channel carries many streams between the holder and us. The holder is trusted.
type channel struct {
	onOpen func(s *stream, request []byte)

	// Guards everything below, also in the streams.
	mu      sync.Mutex
	streams map[uint32]*stream
	next    uint32
	waiting []byte
	// `more`: there is something to write. `room`: it has been taken.
	more, room sync.Cond
}

func newChannel() *channel {
	c := &channel{streams: map[uint32]*stream{}, next: 2}
	c.more.L, c.room.L = &c.mu, &c.mu
	return c
}

func (c *channel) open(request any) *stream {
	payload, _ := json.Marshal(request)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.add(c.next)
	c.next += 2
	c.send(s.id, openFrame, payload)
	return s
}

func (c *channel) add(id uint32) *stream {
	s := &stream{channel: c, id: id, credit: windowBytes}
	s.changed.L = &c.mu
	c.streams[id] = s
	return s
}

// send queues a frame. The caller holds the lock.
func (c *channel) send(id uint32, kind byte, payload []byte) {
	c.waiting = binary.BigEndian.AppendUint32(c.waiting, id)
	c.waiting = append(c.waiting, kind)
	c.waiting = binary.BigEndian.AppendUint32(c.waiting, uint32(len(payload)))
	c.waiting = append(c.waiting, payload...)
	c.more.Signal()
}

// write writes what is queued, together if it can, until the output fails.
func (c *channel) write(output io.Writer) {
	var written []byte
	for {
		c.mu.Lock()
		for len(c.waiting) == 0 {
			c.more.Wait()
		}
		frames := c.waiting
		c.waiting = written[:0]
		c.room.Broadcast()
		c.mu.Unlock()
		if _, err := output.Write(frames); err != nil {
			return
		}
		written = frames
	}
}

// read serves the holder's frames until the input ends.
func (c *channel) read(input io.Reader) error {
	reader := bufio.NewReaderSize(input, 65_536)
	var header [frameHeaderBytes]byte
	for {
		if _, err := io.ReadFull(reader, header[:]); err != nil {
			return err
		}
		length := binary.BigEndian.Uint32(header[5:])
		if length > maxFrameBytes {
			return errors.New("a frame is invalid")
		}
		payload := make([]byte, length)
		if _, err := io.ReadFull(reader, payload); err != nil {
			return err
		}
		c.take(binary.BigEndian.Uint32(header[:]), header[4], payload)
	}
}

func (c *channel) take(id uint32, kind byte, payload []byte) {
	c.mu.Lock()
	if kind == openFrame {
		s := c.add(id)
		c.mu.Unlock()
		c.onOpen(s, payload)
		return
	}
	defer c.mu.Unlock()
	s := c.streams[id]
	if s == nil {
		return // it has ended here, but not yet at the holder
	}
	switch kind {
	case dataFrame:
		s.received = append(s.received, payload)
	case windowFrame:
		s.credit += int(binary.BigEndian.Uint32(payload))
	case endFrame:
		s.otherHasEnded = true
		s.forgetIfOver()
	case resetFrame:
		s.isReset = true
		delete(c.streams, id)
	}
	s.changed.Broadcast()
}
