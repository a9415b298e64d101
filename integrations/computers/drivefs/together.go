package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
)

const (
	// A content up to this size is sent together with others.
	maxTogetherBytes = 64 << 10
	// What one request has at most.
	maxTogetherFiles        = 64
	maxTogetherRequestBytes = 1 << 20
	// Requests at once. While these are answered, the next files gather.
	maxTogetherRequests = 2
)

// What the worker is told of a content (PUT /files, POST /files).
type putFields struct {
	ParentID     string `json:"parentId"`
	Name         string `json:"name"`
	ItemID       string `json:"itemId,omitempty"`
	BaseVersion  int64  `json:"baseVersion"`
	ModifiedAtMs int64  `json:"modifiedAtMs"`
	Executable   bool   `json:"executable"`
	Session      string `json:"session"`
	Size         int64  `json:"size"`
}

// together sends small contents of one computer, several in one request. A request begins when an earlier one has been
// answered, without a timer, so a lone file does not wait. The refusal of one file is its own.
type together struct {
	backend *backend

	mu       sync.Mutex
	waiting  []*smallPut
	requests int
}

type smallPut struct {
	ctx     context.Context
	fields  putFields
	content []byte
	done    chan struct{}
	answer  item
	err     error
}

// put sends one content. It also returns if the context ends.
func (t *together) put(ctx context.Context, fields putFields, content []byte) (item, error) {
	each := &smallPut{ctx: ctx, fields: fields, content: content, done: make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, each)
	if t.requests < maxTogetherRequests {
		t.requests++
		go t.run()
	}
	t.mu.Unlock()
	select {
	case <-each.done:
		return each.answer, each.err
	case <-ctx.Done():
		return item{}, context.Cause(ctx)
	}
}

func (t *together) run() {
	for {
		t.mu.Lock()
		group := t.take()
		if len(group) == 0 {
			t.requests--
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		t.send(group)
	}
}

// take returns the next files that somebody still waits for. mu is held.
func (t *together) take() (group []*smallPut) {
	bytes, count := int64(0), 0
	for _, each := range t.waiting {
		bytes += each.fields.Size
		if len(group) == maxTogetherFiles || len(group) > 0 && bytes > maxTogetherRequestBytes {
			break
		}
		count++
		if each.ctx.Err() == nil {
			group = append(group, each)
		}
	}
	t.waiting = t.waiting[count:]
	return group
}

func (t *together) send(group []*smallPut) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var callers atomic.Int64
	callers.Store(int64(len(group)))
	for _, each := range group {
		defer context.AfterFunc(each.ctx, func() {
			if callers.Add(-1) == 0 {
				stop() // nobody waits any more
			}
		})()
	}
	answers, err := t.ask(ctx, group)
	for at, each := range group {
		if each.err = err; err == nil {
			each.answer, each.err = answers[at].result()
		}
		close(each.done)
	}
}

// What the worker answers for one file: its item, or why it was refused.
type putAnswer struct {
	itemAnswer
	refusal
}

func (a *putAnswer) result() (item, error) {
	if a.Status != 0 {
		return item{}, &a.refusal
	}
	if a.Item.ID == "" {
		return item{}, syscall.EIO
	}
	return a.Item, nil
}

// ask sends one request: a line of JSON about the files, and then their bytes.
func (t *together) ask(ctx context.Context, group []*smallPut) ([]putAnswer, error) {
	var about struct {
		Files []putFields `json:"files"`
	}
	for _, each := range group {
		about.Files = append(about.Files, each.fields)
	}
	body := &bytes.Buffer{}
	if err := json.NewEncoder(body).Encode(about); err != nil { // ends the line
		return nil, err
	}
	for _, each := range group {
		body.Write(each.content)
	}
	response, err := t.backend.send(ctx, "POST", "/files", nil, body, int64(body.Len()))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct {
		Files []putAnswer `json:"files"`
	}
	err = json.NewDecoder(response.Body).Decode(&answer)
	io.Copy(io.Discard, response.Body)
	if err == nil && len(answer.Files) != len(group) {
		err = syscall.EIO
	}
	return answer.Files, err
}
