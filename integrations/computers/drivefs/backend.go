package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"
)

// How long a request is repeated while the worker does not answer, before the program in the computer gets EIO.
var patience = 60 * time.Second

const (
	// A connection on which nothing moves for this long is given up.
	silence = 60 * time.Second
	// A signal does not end a request at once: programs do not expect EINTR from a file system.
	interruptDelay = 2 * time.Second
	maxRetryPause  = 2 * time.Second
)

// An item as the worker describes it.
type item struct {
	ID           string `json:"id"`
	ParentID     string `json:"parentId"`
	Kind         string `json:"kind"`
	Name         string `json:"name"`
	Size         int64  `json:"size"`
	Version      int64  `json:"version"`
	Sha256       string `json:"sha256"`
	Executable   bool   `json:"executable"`
	ModifiedAtMs int64  `json:"modifiedAtMs"`
	Target       string `json:"target"`
	Revision     int64  `json:"revision"`
	// Only in changes. False: it is in the trash, or gone.
	Live bool `json:"live"`
}

// An answer of the worker that refuses a request.
type refusal struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
}

func (r *refusal) Error() string { return fmt.Sprintf("%d %s", r.Status, r.Code) }

// isPassing says whether a repeated request may succeed.
func isPassing(err error) bool {
	var refused *refusal
	if errors.As(err, &refused) {
		return refused.Status == 503 || refused.Status == 429
	}
	var onDisk *fs.PathError
	return !errors.Is(err, errWrongContent) && !errors.As(err, &onDisk)
}

var errnoOfCode = map[string]syscall.Errno{
	"NAME_TAKEN": syscall.EEXIST, "NOT_EMPTY": syscall.ENOTEMPTY, "QUOTA_EXCEEDED": syscall.ENOSPC,
	"FILE_TOO_LARGE": syscall.EFBIG,
}

var errnoOfStatus = map[int]syscall.Errno{
	403: syscall.EACCES, 404: syscall.ENOENT, 409: syscall.EEXIST, 413: syscall.ENOSPC, 422: syscall.EINVAL,
}

// errnoOf returns what a program in the computer is told.
func errnoOf(err error) syscall.Errno {
	var refused *refusal
	if errors.As(err, &refused) {
		if errno, ok := errnoOfCode[refused.Code]; ok {
			return errno
		}
		if errno, ok := errnoOfStatus[refused.Status]; ok {
			return errno
		}
		return syscall.EIO
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return syscall.EIO
}

func isStatus(err error, status int) bool {
	var refused *refusal
	return errors.As(err, &refused) && refused.Status == status
}

// backend asks the worker for one computer. It has connections of its own, so that it waits for no other computer.
type backend struct {
	base   string
	client *http.Client
}

func newBackend(socket, computerID string) *backend {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		connection, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		return &watchedConnection{connection}, err
	}
	transport := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second,
		DisableCompression: true, WriteBufferSize: 128 << 10, ReadBufferSize: 64 << 10}
	return &backend{"http://worker/computers/" + url.PathEscape(computerID), &http.Client{Transport: transport}}
}

// A connection whose reads and writes end if the other side is silent.
type watchedConnection struct{ net.Conn }

func (c *watchedConnection) Read(bytes []byte) (int, error) {
	c.SetReadDeadline(time.Now().Add(silence))
	return c.Conn.Read(bytes)
}

func (c *watchedConnection) Write(bytes []byte) (int, error) {
	c.SetWriteDeadline(time.Now().Add(silence))
	return c.Conn.Write(bytes)
}

// interruptible returns a context that ends some time after the kernel says that the program got a signal.
func interruptible(cancel <-chan struct{}) (context.Context, func()) {
	ctx, stop := context.WithCancelCause(context.Background())
	go func() {
		select {
		case <-cancel:
			select {
			case <-time.After(interruptDelay):
				stop(syscall.EINTR)
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
	}()
	return ctx, func() { stop(nil) }
}

// patiently repeats a request until it is answered, refused, or patience is over.
func patiently(ctx context.Context, request func(context.Context) error) error {
	ctx, stop := context.WithTimeoutCause(ctx, patience, syscall.EIO)
	defer stop()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, maxRetryPause) {
		err := request(ctx)
		if err == nil || ctx.Err() == nil && !isPassing(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// ask sends a request with a JSON body and reads a JSON answer, patiently.
func (b *backend) ask(ctx context.Context, method, path string, query url.Values, body, answer any) error {
	return patiently(ctx, func(ctx context.Context) error { return b.askOnce(ctx, method, path, query, body, answer) })
}

func (b *backend) askOnce(ctx context.Context, method, path string, query url.Values, body, answer any) error {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(encoded)
	}
	response, err := b.send(ctx, method, path, query, content, -1)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if answer != nil {
		err = json.NewDecoder(response.Body).Decode(answer)
	}
	io.Copy(io.Discard, response.Body) // so that the connection can be used again
	return err
}

// send sends a request once. The caller closes the body of the answer.
func (b *backend) send(ctx context.Context, method, path string, query url.Values, body io.Reader, size int64,
) (*http.Response, error) {
	address := b.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	if size >= 0 {
		request.ContentLength = size
		request.Header.Set("Content-Type", "application/octet-stream")
	} else if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := b.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	refused := &refusal{}
	json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(refused)
	refused.Status = response.StatusCode
	return nil, refused
}

type rootAnswer struct {
	Item         item   `json:"item"`
	Revision     int64  `json:"revision"`
	Access       string `json:"access"`
	FreeBytes    *int64 `json:"freeBytes"`
	MaxFileBytes int64  `json:"maxFileBytes"`
}

type itemAnswer struct {
	Item item `json:"item"`
}

// children lists a folder. The revision is one that the list has at least.
func (b *backend) children(ctx context.Context, folderID string) (items []item, revision int64, err error) {
	after := ""
	for first := true; ; first = false {
		var page struct {
			Items    []item `json:"items"`
			Next     string `json:"next"`
			Revision int64  `json:"revision"`
		}
		query := url.Values{"folderId": {folderID}}
		if after != "" {
			query.Set("after", after)
		}
		if err := b.ask(ctx, "GET", "/children", query, nil, &page); err != nil {
			return nil, 0, err
		}
		if first {
			revision = page.Revision
		}
		items = append(items, page.Items...)
		if page.Next == "" {
			return items, revision, nil
		}
		after = page.Next
	}
}

// content reads a file's bytes, or a part of them if length is not 0.
func (b *backend) content(ctx context.Context, it item, offset, length int64) (*http.Response, error) {
	query := url.Values{"itemId": {it.ID}, "version": {strconv.FormatInt(it.Version, 10)}}
	request, err := http.NewRequestWithContext(ctx, "GET", b.base+"/content?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	if length > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
	}
	response, err := b.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == 200 || response.StatusCode == 206 && length > 0 {
		return response, nil
	}
	defer response.Body.Close()
	refused := &refusal{}
	json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(refused)
	refused.Status = response.StatusCode
	return nil, refused
}
