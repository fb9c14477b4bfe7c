package host

import (
	"time"
)

// Status is how a plugin is.
type Status struct {
	// Ready is whether it answers, Reason one of the reasons of the condition Ready, and Message the same for people.
	Ready           bool
	Reason, Message string
	// Generation is that of the Plugin that this is about.
	Generation int64
	// Stages are what it offers, or did when it last answered.
	Stages, Services []string
	// Targets are the names of those that it was started with.
	Targets []string
	// Sha256 is the checksum of the program that runs, and Started when it was started.
	Sha256      string
	Started     time.Time
	Incarnation int64
	Restarts    int64
	// LastError is why it last failed.
	LastError    string
	LastErrorAt  time.Time
	RestartedFor string
	RefetchedFor string
	// User is whom it runs as, 0 for the server's own.
	User uint32
	// Shared are its stages that others offer, too.
	Shared []Shared
}

// Shared is a stage that other plugins offer, too.
type Shared struct {
	Stage   string
	Plugins []string
}
