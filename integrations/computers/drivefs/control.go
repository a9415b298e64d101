package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

type mountState struct {
	ComputerID string `json:"computerId"`
	SpaceID    string `json:"spaceId"`
	Access     string `json:"access"`
	IsMounted  bool   `json:"mounted"`
	unsent
}

const maxOrderBytes = 1 << 20

// routes are those of the control socket. Only the host's worker can reach it.
func (m *daemon) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{"pid": os.Getpid(), "build": build(), "mounts": m.states()})
	})
	mux.HandleFunc("PUT /mounts/{computer}", func(w http.ResponseWriter, r *http.Request) {
		var spec mountSpec
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrderBytes)).Decode(&spec); err != nil {
			fail(w, 422, "INVALID", err)
		} else if err := m.mount(r.Context(), r.PathValue("computer"), spec); err != nil {
			fail(w, statusOf(err), "MOUNT_FAILED", err)
		} else {
			w.WriteHeader(http.StatusNoContent)
		}
	})
	mux.HandleFunc("DELETE /mounts/{computer}", func(w http.ResponseWriter, r *http.Request) {
		timeoutMs, _ := strconv.ParseInt(r.URL.Query().Get("timeoutMs"), 10, 64)
		if err := m.unmount(r.PathValue("computer"), time.Duration(timeoutMs)*time.Millisecond); err != nil {
			fail(w, 500, "UNMOUNT_FAILED", err)
		} else {
			w.WriteHeader(http.StatusNoContent)
		}
	})
	mux.HandleFunc("POST /mounts/{computer}/sync", func(w http.ResponseWriter, r *http.Request) {
		if d := m.driveOf(r.PathValue("computer")); d != nil {
			d.answerSync(w, r)
		} else {
			fail(w, 404, "NOT_MOUNTED", errors.New("the computer has no mount"))
		}
	})
	return mux
}

// build names this program. A worker whose program has another name is of another version.
func build() string {
	program, _ := os.Executable()
	return filepath.Base(program)
}

func (d *drive) answerSync(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		TimeoutMs int64 `json:"timeoutMs"`
	}
	json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrderBytes)).Decode(&asked)
	d.syncAll(time.Duration(asked.TimeoutMs) * time.Millisecond)
	state := d.state()
	result := map[string]any{"pendingFiles": state.PendingFiles, "error": nil}
	if state.PendingFiles > 0 && state.Error != "" {
		result["error"] = state.Error
	}
	answer(w, 200, result)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

func fail(w http.ResponseWriter, status int, code string, err error) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"status": status, "code": code, "detail": err.Error()})
}

func statusOf(err error) int {
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		return refused.Status
	case errors.Is(err, errInvalid):
		return 422
	}
	return 503
}

// How long a program that is about to start waits for the news of its drive.
const refreshPatience = 250 * time.Millisecond

func (d *drive) answerRefresh(w http.ResponseWriter, r *http.Request) {
	ctx, stop := context.WithTimeout(r.Context(), refreshPatience)
	defer stop()
	d.refresh(ctx)
	w.WriteHeader(http.StatusNoContent)
}

// serveSync makes a computer's own socket. Whoever runs its holder may ask there that what was written is on the drive,
// and that what has changed on the drive is here, and for nothing else.
func (d *drive) serveSync() error {
	if d.spec.SyncSocket == "" {
		return nil
	}
	listener, err := listen(d.spec.SyncSocket)
	if err != nil {
		return err
	}
	if err := os.Lchown(d.spec.SyncSocket, int(d.spec.UID), int(d.spec.GID)); err != nil && os.Geteuid() == 0 {
		listener.Close()
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sync", d.answerSync)
	mux.HandleFunc("POST /refresh", d.answerRefresh)
	server := &http.Server{Handler: mux}
	go server.Serve(listener)
	context.AfterFunc(d.ended, func() { server.Close() })
	return nil
}

// listen makes a socket that only its owner can use, in place of one that is there.
func listen(path string) (net.Listener, error) {
	private, err := os.MkdirTemp(filepath.Dir(path), ".socket-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(private)
	temporary := filepath.Join(private, "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	if err = os.Chmod(temporary, 0o600); err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}
