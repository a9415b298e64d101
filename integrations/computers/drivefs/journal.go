package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
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
}

// journal is one computer's folder of entries. Only this process uses it.
type journal struct {
	dir     string
	numbers atomic.Uint64
}

// openJournal reads the entries of a computer, the oldest first.
func openJournal(dir string) (*journal, []*entry, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	j := &journal{dir: dir}
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
		each := &entry{}
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err == nil {
			err = json.Unmarshal(text, each)
		}
		if each.Number, _ = strconv.ParseUint(number, 16, 64); err != nil || each.Number == 0 {
			return nil, nil, fmt.Errorf("%s is not readable: %w", file.Name(), err)
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

func (j *journal) dataOf(number uint64) string { return fmt.Sprintf("%s/%016x.data", j.dir, number) }

// newData makes an empty file for a content.
func (j *journal) newData() (uint64, *os.File, error) {
	number := j.numbers.Add(1)
	file, err := os.OpenFile(j.dataOf(number), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	return number, file, err
}

// write makes an entry durable, or replaces one that is there. The data is synced by the caller before.
func (j *journal) write(e *entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s/%016x", j.dir, e.Number)
	file, err := os.OpenFile(name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(name+".new", name+".json")
	}
	if err != nil {
		return err
	}
	return syncFolder(j.dir)
}

// remove forgets an entry and its data. The entry goes first: data without an entry means nothing.
func (j *journal) remove(number uint64) {
	os.Remove(fmt.Sprintf("%s/%016x.json", j.dir, number))
	os.Remove(j.dataOf(number))
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// put sends an entry once, and returns the item that the drive has now. A file whose item is in the trash becomes a new
// one, and one whose folder is in the trash becomes one in the drive's root: nothing that was written is lost.
func (j *journal) put(ctx context.Context, b *backend, e *entry) (item, error) {
	it, err := j.putOnce(ctx, b, e)
	if isStatus(err, 404) && e.ItemID != "" {
		e.ItemID = ""
		if err = j.write(e); err == nil {
			it, err = j.putOnce(ctx, b, e)
		}
	}
	if isStatus(err, 404) {
		var root rootAnswer
		if b.askOnce(ctx, "GET", "/root", nil, nil, &root) != nil || root.Item.ID == e.ParentID {
			return it, err
		}
		e.ParentID = root.Item.ID
		if err = j.write(e); err == nil {
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
	query := url.Values{
		"parentId": {e.ParentID}, "name": {e.Name}, "modifiedAtMs": {strconv.FormatInt(e.ModifiedAtMs, 10)},
		"executable": {strconv.FormatBool(e.Executable)}, "session": {e.Session},
	}
	if e.ItemID != "" {
		query.Set("itemId", e.ItemID)
		query.Set("baseVersion", strconv.FormatInt(e.BaseVersion, 10))
	}
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
