package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
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

// processID is another in each process, so that the worker can tell what a killed one has sent from what is sent now.
var processID = fmt.Sprintf("%016x", randomNumber())

const processHeader = "Atrium-Process"

// backend asks the worker for one computer. It has connections of its own, so that it waits for no other computer.
type backend struct {
	base     string
	client   *http.Client
	together *together
	alone    chan struct{} // one place for each request with a large content
}

func newBackend(socket, computerID string) *backend {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		connection, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		return &watchedConnection{connection}, err
	}
	transport := &identified{http.Transport{DialContext: dial, MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second,
		DisableCompression: true, WriteBufferSize: 128 << 10, ReadBufferSize: 64 << 10}}
	b := &backend{base: "http://worker/computers/" + url.PathEscape(computerID),
		client: &http.Client{Transport: transport}, alone: make(chan struct{}, maxSends)}
	b.together = &together{backend: b}
	return b
}

// identified says in each request which process sends it.
type identified struct{ http.Transport }

func (t *identified) RoundTrip(request *http.Request) (*http.Response, error) {
	request.Header.Set(processHeader, processID)
	return t.Transport.RoundTrip(request)
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
	Epoch        string `json:"epoch"`
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
