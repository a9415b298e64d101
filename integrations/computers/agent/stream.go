package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

const (
	// How many bytes one side may send on a stream before the other has read them.
	windowBytes = 131_072
	// What a data frame takes of the window besides its bytes.
	frameCost = 64
)

// Kinds of messages within a stream (../protocol/messages.ts).
const (
	answerMessage = 1 + iota
	stdoutMessage
	stderrMessage
	ptyMessage
	exitMessage
)

const maxMessageBytes = 32_768

var errReset = errors.New("the stream has been reset")

// A stream of a channel. Each side ends its own half.
type stream struct {
	channel *channel
	id      uint32
	changed sync.Cond
	// What has not been read yet.
	received [][]byte
	// How much we may send, and how much was read here and not granted to the holder again.
	credit, taken int

	hasEnded, otherHasEnded, isReset bool
}

func (s *stream) Read(into []byte) (int, error) {
	c := s.channel
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(s.received) == 0 && !s.otherHasEnded && !s.isReset {
		s.changed.Wait()
	}
	if s.isReset {
		return 0, errReset
	}
	if len(s.received) == 0 {
		return 0, io.EOF
	}
	count := copy(into, s.received[0])
	s.received[0] = s.received[0][count:]
	s.taken += count
	if len(s.received[0]) == 0 {
		s.received = s.received[1:]
		s.taken += frameCost
	}
	if s.taken >= windowBytes/4 && !s.otherHasEnded {
		c.send(s.id, windowFrame, binary.BigEndian.AppendUint32(nil, uint32(s.taken)))
		s.taken = 0
	}
	return count, nil
}

func (s *stream) Write(from []byte) (int, error) {
	c := s.channel
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := 0
	for sent < len(from) {
		if s.isReset || s.hasEnded {
			return sent, errReset
		}
		if s.credit <= frameCost {
			s.changed.Wait()
		} else if len(c.waiting) > maxWaitingBytes {
			c.room.Wait()
		} else {
			count := min(len(from)-sent, s.credit-frameCost, maxDataBytes)
			s.credit -= count + frameCost
			c.send(s.id, dataFrame, from[sent:sent+count])
			sent += count
		}
	}
	return sent, nil
}

func (s *stream) CloseWrite() error {
	s.channel.mu.Lock()
	defer s.channel.mu.Unlock()
	if !s.hasEnded && !s.isReset {
		s.hasEnded = true
		s.channel.send(s.id, endFrame, nil)
		s.forgetIfOver()
	}
	return nil
}

// Close ends both halves.
func (s *stream) Close() error {
	s.channel.mu.Lock()
	defer s.channel.mu.Unlock()
	if !s.isReset && !(s.hasEnded && s.otherHasEnded) {
		s.channel.send(s.id, resetFrame, nil)
	}
	s.isReset = true
	delete(s.channel.streams, s.id)
	s.changed.Broadcast()
	return nil
}

func (s *stream) forgetIfOver() {
	if s.hasEnded && s.otherHasEnded {
		delete(s.channel.streams, s.id)
	}
}

// answer begins what we say on a stream that the holder has opened.
func (s *stream) answer(value any) {
	payload, _ := json.Marshal(value)
	s.Write(appendMessage(nil, answerMessage, payload))
}

// finish is the whole of what we say.
func (s *stream) finish(value any) {
	s.answer(value)
	s.CloseWrite()
}

func appendMessage(to []byte, kind byte, payload []byte) []byte {
	to = binary.BigEndian.AppendUint32(append(to, kind), uint32(len(payload)))
	return append(to, payload...)
}
