package main

import "sync"

// turns has the requests about one upload wait for each other, and for no other upload's.
type turns struct {
	lock    sync.Mutex
	uploads map[string]*turn
}

type turn struct {
	sync.Mutex
	// wanted counts the requests that have the turn or wait for it.
	wanted int
}

// take waits for the turn of a request, and returns how to end it. Without an upload there is nothing to wait for.
func (t *turns) take(uploadID *string) func() {
	if uploadID == nil {
		return func() {}
	}
	id := *uploadID
	t.lock.Lock()
	if t.uploads == nil {
		t.uploads = map[string]*turn{}
	}
	own := t.uploads[id]
	if own == nil {
		own = &turn{}
		t.uploads[id] = own
	}
	own.wanted++
	t.lock.Unlock()
	own.Lock()
	return func() {
		own.Unlock()
		t.lock.Lock()
		defer t.lock.Unlock()
		if own.wanted--; own.wanted == 0 {
			delete(t.uploads, id)
		}
	}
}
