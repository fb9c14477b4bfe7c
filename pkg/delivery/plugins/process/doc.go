// Package process runs programs of strangers beside the server: with a user, a folder and an environment of their own, with bounds on their memory,
// files and processes, and until the last process that they have started is gone.
//
// A program is started by way of this one, under another name, which takes away what the program may not have and then becomes it. So there is no moment at which the
// program runs without its bounds, or without a record by which the next server finds it. It ends with the server, also with one that is killed.
package process

import (
	"errors"
	"time"
)

// Limits bound a program and what it starts. Zero is no bound.
type Limits struct {
	// Memory is what each of its processes may use for data, in bytes.
	Memory uint64
	// Files is how many files and connections each may have open.
	Files uint64
	// Processes is how many processes and threads its user may have. It holds for programs with a user of their own.
	Processes uint64
}

// User is one that a program runs as, and the group of the same number.
type User struct {
	ID uint32
}

// Spec says what to run.
type Spec struct {
	// Name is what it is called in messages.
	Name string
	// Program is the path of an executable, Args what follows its name.
	Program string
	Args    []string
	// Checksum is noted in the record.
	Checksum string
	// Home is the folder of the program, which is made if need be. Its working directory, its home and its folder for temporary files are there.
	Home string
	// User is whom it runs as, nil for whoever runs this process.
	User   *User
	Limits Limits
	// Output takes what it writes.
	Output *Output
	// Record is the file that tells of it as long as it runs.
	Record string
	// Beside says that it runs beside another program of its user, so that its end is not the end of all that the user has.
	Beside bool
}

// ErrUnsupported says that programs cannot be run on this system.
var ErrUnsupported = errors.New("plugins can be run on Linux alone")

// Name is what this program is started as to become another one.
const Name = "manifold-plugin"

// Exit says how a program has ended.
type Exit struct {
	// Said is how it ended, for people, and Success whether that was with code 0.
	Said    string
	Success bool
	At      time.Time
}
