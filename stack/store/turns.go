package main

import "sync"

// turns makes requests about the same upload wait for each other.
type turns struct {
	lock    sync.Mutex
	uploads map[string]*turn
}

type turn struct {
	sync.Mutex
	// wanted counts the requests that have the turn or wait for it.
	wanted int
}

// take waits for the turn of a request, and returns the function that ends it. Without an upload it does not wait.
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
