package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests mount drives on /dev/fuse. The program runs as a process of its own: this test's program, with a variable.
const runsProgram = "ATRIUM_DRIVEFS_RUNS"

func TestMain(m *testing.M) {
	if os.Getenv(runsProgram) != "" {
		flag.CommandLine = flag.NewFlagSet(os.Args[0], flag.ExitOnError)
		main()
		return
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		fmt.Println("NOT RUN: the tests of the drive of computers: there is no /dev/fuse")
		return
	}
	os.Exit(m.Run())
}

const (
	testComputer = "cmp_1"
	testSpace    = "spc_1"
	// Only guards against hanging.
	testPatience = 20 * time.Second
)

// world is a worker, the program, and the folders of both.
type world struct {
	*fake
	t       testing.TB
	dir     string
	process *exec.Cmd
	options []string
	// Where the drive of the first computer is.
	path string
}

func newWorld(t testing.TB, options ...string) *world {
	w := &world{fake: newFake(t), t: t, dir: t.TempDir(), options: options}
	w.path = w.dir + "/drive"
	t.Cleanup(func() {
		if w.process != nil {
			w.process.Process.Signal(syscall.SIGTERM)
			w.process.Wait()
		}
		mounts, _ := filepath.Glob(w.dir + "/drive*")
		for _, each := range mounts {
			unmountDead(each)
		}
	})
	w.start()
	return w
}

// mounted is a world whose first computer has its drive.
func mounted(t *testing.T, options ...string) *world {
	w := newWorld(t, options...)
	w.mount(testComputer, testSpace, w.path)
	return w
}

func (w *world) start() {
	arguments := append([]string{"--backend", w.socket, "--control", w.dir + "/control", "--cache", w.dir + "/cache",
		"--stage", w.dir + "/stage"}, w.options...)
	w.process = exec.Command(os.Args[0], arguments...)
	w.process.Env = append(os.Environ(), runsProgram+"=1")
	w.process.Stdout, w.process.Stderr = os.Stderr, os.Stderr
	must(w.t, w.process.Start())
	w.until("the program answers", func() bool {
		status, _ := w.control("GET", "/", nil)
		return status == 200
	})
}

// kill ends the program as a crash does.
func (w *world) kill() {
	w.process.Process.Kill()
	w.process.Wait()
	w.process = nil
}

func (w *world) control(method, path string, body any) (int, map[string]any) {
	return ask(w.dir+"/control", method, path, body)
}

func ask(socket, method, path string, body any) (int, map[string]any) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }}}
	text, _ := json.Marshal(body)
	request, _ := http.NewRequest(method, "http://drive"+path, bytes.NewReader(text))
	response, err := client.Do(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	var answer map[string]any
	json.NewDecoder(response.Body).Decode(&answer)
	return response.StatusCode, answer
}

func (w *world) mount(computerID, spaceID, path string) {
	w.t.Helper()
	unmountDead(path) // left by a killed program: otherwise the folder does not even answer
	must(w.t, os.MkdirAll(path, 0o755))
	w.order(computerID, spaceID, path, nil)
}

// order asks for a mount, as a worker does also for one that is there.
func (w *world) order(computerID, spaceID, path string, root *rootAnswer) {
	w.t.Helper()
	status, answer := w.control("PUT", "/mounts/"+computerID, mountSpec{SpaceID: spaceID, Name: "computer", Target: path,
		UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), LocalDir: path + ".local", SyncSocket: path + ".sync",
		AsideDir: path + ".unsent", Root: root})
	if status != 204 {
		w.t.Fatalf("mount: %d %v", status, answer)
	}
}

func (w *world) sync() {
	w.t.Helper()
	status, answer := w.control("POST", "/mounts/"+testComputer+"/sync", map[string]any{"timeoutMs": 10_000})
	if status != 200 || answer["pendingFiles"] != 0.0 {
		w.t.Fatalf("sync: %d %v", status, answer)
	}
}

func (w *world) at(path string) string { return w.path + "/" + path }

func (w *world) save(path, text string) {
	w.t.Helper()
	must(w.t, os.WriteFile(w.at(path), []byte(text), 0o644))
}

func (w *world) read(path string) string {
	text, err := os.ReadFile(w.at(path))
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(text)
}

func (w *world) expect(path, text string) {
	w.t.Helper()
	if actual := w.read(path); actual != text {
		w.t.Fatalf("%s has %q and should have %q", path, actual, text)
	}
}

// expectOnDrive checks a file's content on the other side.
func (w *world) expectOnDrive(path, text string) {
	w.t.Helper()
	if actual := w.content(path); actual != text {
		w.t.Fatalf("on the drive %s has %q and should have %q", path, actual, text)
	}
}

func (w *world) until(what string, check func() bool) {
	w.t.Helper()
	for began := time.Now(); !check(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > testPatience {
			w.t.Fatalf("it never happened that %s", what)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func expectError(t *testing.T, err error, errno syscall.Errno) {
	t.Helper()
	if !errors.Is(err, errno) {
		t.Fatalf("the error is %v and should be %v", err, errno)
	}
}

func namesIn(t *testing.T, path string) string {
	t.Helper()
	entries, err := os.ReadDir(path)
	must(t, err)
	var names []string
	for _, each := range entries {
		names = append(names, each.Name())
	}
	return strings.Join(names, " ")
}
