package main

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	asCommand = "as"
	// The same, once the process is in the cgroup of the computer's programs.
	movedAsCommand = "moved-as"
	// How long a process of another user waits for its cgroup.
	cgroupWait = 2 * time.Second
)

// asUser returns the command line that runs a command as a user of the sandbox. On some machines only a process of root
// can be moved to the cgroup of the computer's programs. So if it `isMoved`, it waits until that is done.
func asUser(user string, isMoved bool, command []string) []string {
	how := asCommand
	if isMoved {
		how = movedAsCommand
	}
	return append([]string{ownProgram, how, user}, command...)
}

// The agent's own program, as processes of the sandbox see it.
const ownProgram = "/opt/atrium/agent"

// runAs becomes the user, and runs the command.
func runAs(name string, command []string) error {
	account, err := findAccount(name)
	if err != nil {
		return err
	}
	if err := syscall.Setgroups(account.groups); err != nil {
		return err
	}
	if err := syscall.Setgid(account.group); err != nil {
		return err
	}
	if err := syscall.Setuid(account.user); err != nil {
		return err
	}
	os.Setenv("USER", account.name)
	os.Setenv("LOGNAME", account.name)
	folder, _ := os.Getwd()
	file, err := findProgram(command[0], folder, os.Getenv("PATH"))
	if err != nil {
		return err
	}
	err = syscall.Exec(file, command, os.Environ())
	if err == syscall.ENOEXEC {
		return syscall.Exec("/bin/sh", append([]string{"/bin/sh", file}, command[1:]...), os.Environ())
	}
	return err
}

// awaitCgroup waits until this process is in another cgroup than its starter, the agent.
func awaitCgroup() {
	agents, _ := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/cgroup")
	for end := time.Now().Add(cgroupWait); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if own, err := os.ReadFile("/proc/self/cgroup"); err != nil || string(own) != string(agents) {
			return
		}
	}
}

const (
	mostListBytes  = 1 << 20
	dropFromBounds = 24 // PR_CAPBSET_DROP
	capabilities   = 64
)

// boundCapabilities takes from the sandbox for good what its first program does not have. Nothing can regain it, as
// no_new_privs ensures by itself.
func boundCapabilities() {
	status, _ := os.ReadFile("/proc/self/status")
	_, permitted, isThere := strings.Cut(string(status), "CapPrm:\t")
	kept, err := strconv.ParseUint(strings.SplitN(permitted, "\n", 2)[0], 16, capabilities)
	for number := 0; number < capabilities && isThere && err == nil && kept != 0; number++ {
		if kept&(1<<number) == 0 {
			syscall.AllThreadsSyscall(syscall.SYS_PRCTL, dropFromBounds, uintptr(number), 0)
		}
	}
}

type account struct {
	name        string
	user, group int
	groups      []int
}

// findAccount looks in the sandbox's own lists. The name may also be a number, which needs no entry.
func findAccount(name string) (account, error) {
	wanted, group, hasGroup := strings.Cut(name, ":")
	found := account{name: wanted, user: -1}
	eachLine("/etc/passwd", func(fields []string) {
		if len(fields) > 3 && found.user < 0 && (fields[0] == wanted || fields[2] == wanted) {
			found.name = fields[0]
			found.user, _ = strconv.Atoi(fields[2])
			found.group, _ = strconv.Atoi(fields[3])
		}
	})
	if number, err := strconv.Atoi(wanted); found.user < 0 && err == nil && number >= 0 && number < usersOfRootFolder {
		found.user = number
	}
	if found.user < 0 {
		return found, refusal("USER_NOT_FOUND")
	}
	isFound := !hasGroup
	eachLine("/etc/group", func(fields []string) {
		if len(fields) < 4 {
			return
		}
		number, err := strconv.Atoi(fields[2])
		if err != nil {
			return
		}
		if hasGroup && (fields[0] == group || fields[2] == group) {
			found.group, isFound = number, true
		}
		for _, member := range strings.Split(fields[3], ",") {
			if member == found.name {
				found.groups = append(found.groups, number)
			}
		}
	})
	if number, err := strconv.Atoi(group); !isFound && err == nil && number >= 0 && number < usersOfRootFolder {
		found.group, isFound = number, true
	}
	if !isFound {
		return found, refusal("USER_NOT_FOUND")
	}
	return found, nil
}

// giveTo gives a new file or folder the owner of what it replaces, or of the folder that it is in. Only root can. In an
// environment with another user than root, people's files so belong to that user.
func giveTo(owner *syscall.Stat_t, give func(user, group int) error) {
	if os.Geteuid() == 0 && owner != nil && owner.Uid != 0 {
		give(int(owner.Uid), int(owner.Gid)) // an owner that does not exist in here keeps it root's
	}
}

func ownerOf(path string, old *syscall.Stat_t) *syscall.Stat_t {
	if old != nil {
		return old
	}
	folder := &syscall.Stat_t{}
	if syscall.Stat(folderOf(path), folder) != nil {
		return nil
	}
	return folder
}

func eachLine(file string, take func(fields []string)) {
	opened, err := openPlain(file)
	if err != nil {
		return
	}
	defer opened.Close()
	for lines := bufio.NewScanner(io.LimitReader(opened, mostListBytes)); lines.Scan(); {
		take(strings.Split(lines.Text(), ":"))
	}
}
