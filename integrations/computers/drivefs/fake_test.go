package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is a worker with one drive in memory. It answers as the worker does (docs: the backend socket).
type fake struct {
	t      testing.TB
	socket string
	server *http.Server

	mu           sync.Mutex
	changed      *sync.Cond
	items        map[string]*fakeItem
	revision     int64
	epoch        string
	access       string
	free         *int64
	lastID       int
	listed       map[string][]*fakeItem
	requests     []string         // method and path, with what they change
	together     []int            // how many files came in one request
	since        map[string]int64 // of folders in the trash: since when their files were removed
	refuse       func(r *http.Request) int
	isAway       bool
	resets       bool
	losesAnswers bool   // of small files
	puttings     int    // requests with contents that have come
	present      string // the process that has asked last
	retired      map[string]bool
	paused       chan struct{} // PUTs wait until it is closed
	slow         func(r *http.Request)
}

type fakeItem struct {
	item
	content  []byte
	versions [][]byte
	session  string
}

const rootID = "itm_root"

func newFake(t testing.TB) *fake {
	f := &fake{t: t, socket: t.TempDir() + "/backend", items: map[string]*fakeItem{}, access: "write",
		listed: map[string][]*fakeItem{}, since: map[string]int64{}, epoch: "ins_1", retired: map[string]bool{}}
	f.changed = sync.NewCond(&f.mu)
	f.items[rootID] = &fakeItem{item: item{ID: rootID, Kind: "folder", Live: true}}
	f.listen()
	t.Cleanup(func() { f.server.Close() })
	return f
}

func (f *fake) listen() {
	listener, err := net.Listen("unix", f.socket)
	if err != nil {
		f.t.Fatal(err)
	}
	f.server = &http.Server{Handler: http.HandlerFunc(f.serve)}
	go f.server.Serve(listener)
}

// away ends the worker. `listen` starts it again.
func (f *fake) away() { f.server.Close() }

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/computers/"), "/", 2)
	path := "/" + parts[1]
	var body map[string]any
	var content []byte
	isPut := r.Method == "PUT" || r.Method == "POST" && path == "/files"
	if isPut {
		var err error
		if content, err = io.ReadAll(r.Body); err != nil {
			return // the program was killed while it sent
		}
		f.mu.Lock()
		paused := f.paused
		f.puttings++
		f.mu.Unlock()
		if paused != nil {
			<-paused
		}
	} else if r.Method == "POST" {
		json.NewDecoder(r.Body).Decode(&body)
	}
	f.mu.Lock()
	slow := f.slow
	f.mu.Unlock()
	if slow != nil {
		slow(r)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Context().Err() != nil || f.isRetired(r.Header.Get(processHeader)) {
		return // the program was killed
	}
	if path == "/files" && r.Method == "POST" {
		f.puts(w, r, content)
		if f.losesAnswers {
			panic(http.ErrAbortHandler) // as if it were killed then
		}
		return
	}
	f.answer(w, r, path, body, content)
}

// isRetired says whether a later process has asked before. mu is held.
func (f *fake) isRetired(process string) bool {
	if process != f.present && !f.retired[process] {
		f.retired[f.present], f.present = true, process
	}
	return f.retired[process]
}

// puts answers for several files in one request as if each had one of its own.
func (f *fake) puts(w http.ResponseWriter, r *http.Request, content []byte) {
	line, rest, _ := bytes.Cut(content, []byte("\n"))
	var about struct{ Files []putFields }
	if err := json.Unmarshal(line, &about); err != nil {
		f.t.Errorf("the files of a request are not described: %v", err)
	}
	f.together = append(f.together, len(about.Files))
	answers := []json.RawMessage{}
	for _, each := range about.Files {
		query := url.Values{"parentId": {each.ParentID}, "name": {each.Name}, "session": {each.Session},
			"modifiedAtMs": {fmt.Sprint(each.ModifiedAtMs)}, "executable": {fmt.Sprint(each.Executable)}}
		if each.ItemID != "" {
			query.Set("itemId", each.ItemID)
			query.Set("baseVersion", fmt.Sprint(each.BaseVersion))
		}
		alone := r.Clone(r.Context())
		alone.Method, alone.URL.RawQuery = "PUT", query.Encode()
		recorder := httptest.NewRecorder()
		f.answer(recorder, alone, "/files", nil, rest[:each.Size])
		answers = append(answers, bytes.TrimSpace(recorder.Body.Bytes()))
		rest = rest[each.Size:]
	}
	answer(w, 200, map[string]any{"files": answers})
}

// answer answers one request. mu is held.
func (f *fake) answer(w http.ResponseWriter, r *http.Request, path string, body map[string]any, content []byte) {
	query := r.URL.Query()
	text := func(name string) string { value, _ := body[name].(string); return value }
	if path != "/changes" {
		f.requests = append(f.requests, r.Method+" "+path)
	}
	if f.refuse != nil {
		if status := f.refuse(r); status != 0 {
			f.fail(w, status, "REFUSED")
			return
		}
	}
	if r.Method != "GET" && f.access != "write" {
		f.fail(w, 403, "FORBIDDEN")
		return
	}
	switch r.Method + " " + path {
	case "GET /root":
		answer(w, 200, map[string]any{"item": f.items[rootID].item, "epoch": f.epoch, "revision": f.revision, "access": f.access,
			"freeBytes": f.free, "maxFileBytes": int64(1 << 30)})
	case "GET /children":
		f.children(w, query.Get("folderId"), query.Get("after"))
	case "GET /content":
		it := f.items[query.Get("itemId")]
		if it == nil {
			f.fail(w, 404, "NOT_FOUND")
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(it.content))
	case "GET /changes":
		f.changes(w, r)
	case "PUT /files":
		f.put(w, r, content)
	case "POST /folders":
		f.make(w, text("id"), text("parentId"), text("name"), "folder", "")
	case "POST /symlinks":
		f.make(w, text("id"), text("parentId"), text("name"), "symlink", text("target"))
	case "POST /move":
		f.move(w, text("itemId"), text("parentId"), text("name"), body["replace"] == true)
	case "POST /trash":
		it := f.items[text("itemId")]
		if it == nil {
			f.fail(w, 404, "NOT_FOUND")
		} else if body["onlyIfEmpty"] == true && len(f.in(it.ID)) > 0 {
			f.fail(w, 409, "NOT_EMPTY")
		} else {
			if since, ok := body["removedSinceMs"].(float64); ok {
				f.since[it.Name] = int64(since)
			}
			it.Live = false
			f.touch(it)
			answer(w, 200, map[string]any{"revision": f.revision})
		}
	case "POST /attributes":
		it := f.items[text("itemId")]
		if ms, ok := body["modifiedAtMs"].(float64); ok {
			it.ModifiedAtMs = int64(ms)
		}
		if executable, ok := body["executable"].(bool); ok {
			it.Executable = executable
		}
		f.touch(it)
		answer(w, 200, map[string]any{"item": it.item})
	default:
		f.t.Errorf("a request that there is not: %s %s", r.Method, path)
	}
}

func (f *fake) fail(w http.ResponseWriter, status int, code string) {
	fail(w, status, code, fmt.Errorf("refused"))
}

func (f *fake) touch(it *fakeItem) {
	f.revision++
	it.Revision = f.revision
	f.changed.Broadcast()
}

func (f *fake) in(parentID string) []*fakeItem {
	var found []*fakeItem
	for _, it := range f.items {
		if it.Live && it.ParentID == parentID && it.ID != rootID {
			found = append(found, it)
		}
	}
	sort.Slice(found, func(a, b int) bool { return found[a].Name < found[b].Name })
	return found
}

func (f *fake) named(parentID, name string) *fakeItem {
	for _, it := range f.items {
		if it.Live && it.ParentID == parentID && keyOf(it.Name) == keyOf(name) {
			return it
		}
	}
	return nil
}

func (f *fake) children(w http.ResponseWriter, folderID, after string) {
	all := f.listed[folderID]
	if after == "" {
		all = f.in(folderID)
		f.listed[folderID] = all // the next pages are of the same list
	}
	from := sort.Search(len(all), func(at int) bool { return all[at].Name > after })
	page, next := all[from:], ""
	if len(page) > 5000 {
		page = page[:5000]
		next = page[4999].Name
	}
	items := make([]item, len(page))
	for at, it := range page {
		items[at] = it.item
	}
	answer(w, 200, map[string]any{"items": items, "next": next, "revision": f.revision})
}

func (f *fake) changes(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	access := f.access
	stop := time.AfterFunc(2*time.Second, f.changed.Broadcast)
	defer stop.Stop()
	patience := 2 * time.Second
	if r.URL.Query().Get("waitMs") == "0" {
		patience = 0
	}
	isOther := func() bool { return f.epoch != r.URL.Query().Get("epoch") }
	isNews := func() bool { return f.revision > after || f.access != access || f.resets || isOther() }
	for began := time.Now(); !isNews() && time.Since(began) < patience && r.Context().Err() == nil; {
		f.changed.Wait()
	}
	items := []item{}
	for _, it := range f.items {
		if it.Revision > after {
			items = append(items, it.item)
		}
	}
	resets := f.resets || isOther()
	f.resets = false
	answer(w, 200, map[string]any{"epoch": f.epoch, "revision": f.revision, "access": f.access, "freeBytes": f.free, "reset": resets,
		"items": items})
}

func (f *fake) put(w http.ResponseWriter, r *http.Request, content []byte) {
	query := r.URL.Query()
	parentID, name := query.Get("parentId"), query.Get("name")
	if parent := f.items[parentID]; !strings.HasPrefix(parentID, "app:") && (parent == nil || !parent.Live) {
		f.fail(w, 404, "NOT_FOUND")
		return
	}
	it := f.items[query.Get("itemId")]
	if query.Get("itemId") != "" && (it == nil || !it.Live) {
		f.fail(w, 404, "NOT_FOUND")
		return
	}
	if it == nil {
		it = f.named(parentID, name)
	}
	base, _ := strconv.ParseInt(query.Get("baseVersion"), 10, 64)
	isConflict := it != nil && (query.Get("itemId") == "" || it.Version != base)
	if isConflict && (bytes.Equal(it.content, content) || it.had(content)) {
		if isExecutable := query.Get("executable") == "true"; isExecutable != it.Executable && bytes.Equal(it.content, content) {
			it.Executable = isExecutable
			f.touch(it)
		}
		answer(w, 200, map[string]any{"item": it.item, "conflict": false})
		return
	}
	if isConflict {
		name = strings.Replace(name, ".", " (from computer).", 1)
		it = nil
	}
	if it == nil {
		it = f.add(parentID, name, "file")
	} else if session := query.Get("session"); it.session != session {
		it.versions = append(it.versions, it.content)
	}
	it.session = query.Get("session")
	it.content = content
	sum := sha256.Sum256(content)
	it.Sha256, it.Size = hex.EncodeToString(sum[:]), int64(len(content))
	it.Version++
	it.ModifiedAtMs, _ = strconv.ParseInt(query.Get("modifiedAtMs"), 10, 64)
	it.Executable = query.Get("executable") == "true"
	f.touch(it)
	answer(w, 200, map[string]any{"item": it.item, "conflict": isConflict})
}

// had says whether an earlier version has a content, which a repeated request brings again.
func (it *fakeItem) had(content []byte) bool {
	return slices.ContainsFunc(it.versions, func(each []byte) bool { return bytes.Equal(each, content) })
}

func (f *fake) add(parentID, name, kind string) *fakeItem {
	f.lastID++
	it := &fakeItem{item: item{ID: fmt.Sprintf("itm_%06d", f.lastID), ParentID: parentID, Name: name, Kind: kind, Live: true,
		ModifiedAtMs: time.Now().UnixMilli()}}
	f.items[it.ID] = it
	return it
}

func (f *fake) make(w http.ResponseWriter, id, parentID, name, kind, target string) {
	if it := f.items[id]; it != nil {
		answer(w, 200, map[string]any{"item": it.item})
		return
	}
	if f.named(parentID, name) != nil {
		f.fail(w, 409, "NAME_TAKEN")
		return
	}
	it := f.add(parentID, name, kind)
	delete(f.items, it.ID)
	it.ID, it.Target = id, target
	f.items[id] = it
	f.touch(it)
	answer(w, 200, map[string]any{"item": it.item})
}

func (f *fake) move(w http.ResponseWriter, id, parentID, name string, replace bool) {
	it, other := f.items[id], f.named(parentID, name)
	if it == nil || !it.Live {
		f.fail(w, 404, "NOT_FOUND")
		return
	}
	if other != nil && other != it {
		if !replace {
			f.fail(w, 409, "NAME_TAKEN")
			return
		}
		if it.session != "" && len(it.versions) == 0 && other.Kind == "file" { // a program has just made it
			other.versions, other.content = append(other.versions, other.content), it.content
			other.Sha256, other.Size, other.Version = it.Sha256, it.Size, other.Version+1
			other.ModifiedAtMs, other.Executable = it.ModifiedAtMs, it.Executable
			it.Live = false
			f.touch(it)
			f.touch(other)
			answer(w, 200, map[string]any{"item": other.item})
			return
		}
		other.Live = false
		f.touch(other)
	}
	it.ParentID, it.Name = parentID, name
	f.touch(it)
	answer(w, 200, map[string]any{"item": it.item})
}

// What tests do from elsewhere.

func (f *fake) write(path, content string) *fakeItem {
	f.mu.Lock()
	defer f.mu.Unlock()
	parts := strings.Split(path, "/")
	parentID := rootID
	for _, name := range parts[:len(parts)-1] {
		folder := f.named(parentID, name)
		if folder == nil {
			folder = f.add(parentID, name, "folder")
			f.touch(folder)
		}
		parentID = folder.ID
	}
	name := parts[len(parts)-1]
	it := f.named(parentID, name)
	if it == nil {
		it = f.add(parentID, name, "file")
	} else {
		it.versions = append(it.versions, it.content)
	}
	it.content = []byte(content)
	it.session = ""
	sum := sha256.Sum256(it.content)
	it.Sha256, it.Size = hex.EncodeToString(sum[:]), int64(len(content))
	it.Version++
	it.ModifiedAtMs = time.Now().UnixMilli()
	f.touch(it)
	return it
}

// find returns a live item by its path, or nil.
func (f *fake) find(path string) *fakeItem {
	f.mu.Lock()
	defer f.mu.Unlock()
	it := f.items[rootID]
	for _, name := range strings.Split(path, "/") {
		if it = f.named(it.ID, name); it == nil {
			return nil
		}
	}
	return it
}

func (f *fake) content(path string) string {
	if it := f.find(path); it != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		return string(it.content)
	}
	return "(none)"
}

func (f *fake) count(request string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	count := 0
	for _, each := range f.requests {
		if each == request {
			count++
		}
	}
	return count
}

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	f.changed.Broadcast()
}
