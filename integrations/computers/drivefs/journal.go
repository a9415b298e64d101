package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// An entry of the journal: a content that is on this host's disk and shall be on the drive. Its file NUMBER.json names
// what it is for, and NUMBER.data is the content. Data without an entry is of a file that was still being written, and
// means nothing after a crash.
type entry struct {
	Number     uint64 `json:"-"`
	ComputerID string `json:"computerId"`
	SpaceID    string `json:"spaceId"`
	// The same for all contents of one file, so that a later one follows the earlier one.
	Key string `json:"key"`
	// Empty: a new file.
	ItemID       string `json:"itemId"`
	BaseVersion  int64  `json:"baseVersion"`
	ParentID     string `json:"parentId"`
	Name         string `json:"name"`
	ModifiedAtMs int64  `json:"modifiedAtMs"`
	Executable   bool   `json:"executable"`
	Session      string `json:"session"`
	Size         int64  `json:"size"`
	// Of the data. Empty: the data was synced before the entry was written.
	Sha256 string `json:"sha256"`
}

const (
	// An entry that was not sent by then is synced, with all others that wait for it. So a process that is killed loses
	// nothing of a closed file, and a power cut at most this time. Most entries are sent before: a sync of each would make
	// a copy of many small files fifty times as slow.
	syncDelay = 100 * time.Millisecond
	// The data of a larger file is synced before its entry is written. That of a smaller one is checked by its hash.
	maxHashedBytes = 8 << 20
	// The host's disk keeps this much free. What the drive does not take fast enough is refused before.
	reserveBytes = 1 << 30
	roomPause    = time.Second
)

// journal is one computer's folder of entries. Only this process uses it.
type journal struct {
	dir     string
	numbers atomic.Uint64
	// Guards the fields of entries that are sent.
	amending sync.Mutex

	mu        sync.Mutex
	unsynced  map[uint64]bool
	isSyncing bool
	roomKnown time.Time
	isRoom    bool
}

// openJournal reads the entries of a computer, the oldest first.
func openJournal(dir string) (*journal, []*entry, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	j := &journal{dir: dir, unsynced: map[uint64]bool{}}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	var entries []*entry
	isEntered := map[string]bool{}
	for _, file := range files {
		number, isEntry := strings.CutSuffix(file.Name(), ".json")
		if !isEntry {
			continue
		}
		each, err := j.read(number)
		if err != nil {
			return nil, nil, fmt.Errorf("%s is not readable: %w", file.Name(), err)
		}
		if each == nil { // a power cut came before it was synced
			os.Remove(filepath.Join(dir, file.Name()))
			continue
		}
		isEntered[number+".data"] = true
		entries = append(entries, each)
		j.numbers.Store(max(j.numbers.Load(), each.Number))
	}
	for _, file := range files {
		if !isEntered[file.Name()] && !strings.HasSuffix(file.Name(), ".json") {
			os.Remove(filepath.Join(dir, file.Name()))
		}
	}
	slices.SortFunc(entries, func(a, b *entry) int { return int(a.Number) - int(b.Number) })
	return j, entries, nil
}

// read returns an entry, or nil if not all of it has reached the disk.
func (j *journal) read(name string) (*entry, error) {
	e := &entry{}
	text, err := os.ReadFile(filepath.Join(j.dir, name+".json"))
	if err != nil {
		return nil, err
	}
	e.Number, _ = strconv.ParseUint(name, 16, 64)
	if json.Unmarshal(text, e) != nil || e.Number == 0 {
		return nil, nil
	}
	data, err := os.Open(j.dataOf(e.Number))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer data.Close()
	if e.Sha256 == "" {
		return e, nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, data); err != nil {
		return nil, err
	}
	if hex.EncodeToString(hash.Sum(nil)) != e.Sha256 {
		return nil, nil
	}
	return e, nil
}

// seal prepares data for its entry.
func (e *entry) seal(data *os.File) error {
	if e.Size > maxHashedBytes {
		return data.Sync()
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(data, 0, e.Size)); err != nil {
		return err
	}
	e.Sha256 = hex.EncodeToString(hash.Sum(nil))
	return nil
}

func (j *journal) dataOf(number uint64) string { return fmt.Sprintf("%s/%016x.data", j.dir, number) }

// newData makes an empty file for a content.
func (j *journal) newData() (uint64, *os.File, error) {
	number := j.numbers.Add(1)
	file, err := os.OpenFile(j.dataOf(number), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	return number, file, err
}

// amend changes an entry that is there, also while it is sent.
func (j *journal) amend(e *entry, change func()) error {
	j.amending.Lock()
	defer j.amending.Unlock()
	change()
	return j.write(e)
}

// write writes an entry, or replaces one that is there.
func (j *journal) write(e *entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s/%016x", j.dir, e.Number)
	if err = os.WriteFile(name+".new", text, 0o600); err == nil {
		err = os.Rename(name+".new", name+".json")
	}
	if err == nil {
		j.syncSoon(e.Number)
	}
	return err
}

// remove forgets an entry and its data. The entry goes first: data without an entry means nothing.
func (j *journal) remove(number uint64) {
	os.Remove(fmt.Sprintf("%s/%016x.json", j.dir, number))
	os.Remove(j.dataOf(number))
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.unsynced, number)
}

// hasRoom says whether the host's disk may take more.
func (j *journal) hasRoom() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if time.Since(j.roomKnown) > roomPause {
		var stat syscall.Statfs_t
		isKnown := syscall.Statfs(j.dir, &stat) == nil
		j.isRoom = !isKnown || stat.Bavail*uint64(stat.Bsize) > min(reserveBytes, stat.Blocks*uint64(stat.Bsize)/10)
		j.roomKnown = time.Now()
	}
	return j.isRoom
}

func (j *journal) syncSoon(number uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unsynced[number] = true
	if !j.isSyncing {
		j.isSyncing = true
		time.AfterFunc(syncDelay, j.sync)
	}
}

func (j *journal) sync() {
	for {
		j.mu.Lock()
		numbers := slices.Sorted(maps.Keys(j.unsynced))
		clear(j.unsynced)
		j.isSyncing = len(numbers) > 0
		j.mu.Unlock()
		if len(numbers) == 0 {
			return
		}
		for _, number := range numbers {
			for _, path := range []string{j.dataOf(number), fmt.Sprintf("%s/%016x.json", j.dir, number)} {
				noteFailure(syncPath(path))
			}
		}
		noteFailure(syncPath(j.dir))
	}
}

func noteFailure(err error) {
	if err != nil && !errors.Is(err, os.ErrNotExist) { // sent meanwhile
		fmt.Fprintf(os.Stderr, "The journal could not be synced: %v\n", err)
	}
}

func syncPath(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Sync()
}

// put sends an entry once, and returns the item that the drive has now. A file whose item is in the trash becomes a new
// one, and one whose folder is in the trash becomes one in the drive's root: nothing that was written is lost.
func (j *journal) put(ctx context.Context, b *backend, e *entry) (item, error) {
	it, err := j.putOnce(ctx, b, e)
	if isStatus(err, 404) && e.ItemID != "" {
		if err = j.amend(e, func() { e.ItemID = "" }); err == nil {
			it, err = j.putOnce(ctx, b, e)
		}
	}
	if isStatus(err, 404) {
		var root rootAnswer
		if b.askOnce(ctx, "GET", "/root", nil, nil, &root) != nil || root.Item.ID == e.ParentID {
			return it, err
		}
		if err = j.amend(e, func() { e.ParentID = root.Item.ID }); err == nil {
			it, err = j.putOnce(ctx, b, e)
		}
	}
	return it, err
}

func (j *journal) putOnce(ctx context.Context, b *backend, e *entry) (item, error) {
	file, err := os.Open(j.dataOf(e.Number))
	if err != nil {
		return item{}, err
	}
	defer file.Close()
	j.amending.Lock()
	query := url.Values{
		"parentId": {e.ParentID}, "name": {e.Name}, "modifiedAtMs": {strconv.FormatInt(e.ModifiedAtMs, 10)},
		"executable": {strconv.FormatBool(e.Executable)}, "session": {e.Session},
	}
	if e.ItemID != "" {
		query.Set("itemId", e.ItemID)
		query.Set("baseVersion", strconv.FormatInt(e.BaseVersion, 10))
	}
	j.amending.Unlock()
	var body io.Reader
	if e.Size > 0 {
		body = io.LimitReader(file, e.Size)
	}
	response, err := b.send(ctx, "PUT", "/files", query, body, e.Size)
	if err != nil {
		return item{}, err
	}
	defer response.Body.Close()
	var answer itemAnswer
	err = json.NewDecoder(response.Body).Decode(&answer)
	io.Copy(io.Discard, response.Body)
	if err == nil && answer.Item.ID == "" {
		err = syscall.EIO
	}
	return answer.Item, err
}
