package logs

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
)

const (
	// mostSaid bounds what is told of one attempt at a stage by somebody else, in bytes as they are stored: a quarter of a log, so that what happens beside
	// it is told as well.
	mostSaid = mostParts / 4 * mostBytes
	// saidKey is what the keys begin with under which a part has how much of that is told. No digest does.
	saidKey = "said/"
)

// Said is what somebody else has to say of a stage, such as the plugin that runs it.
type Said struct {
	Stage string
	// Attempt counts from 1. Entry is greater each time that the stage is entered, and 0 if it has been left: what comes then belongs to the last one.
	Attempt int32
	Entry   int64
	Blocks  []Block
}

// Block is a text of one line or several.
type Block struct {
	// Index grows from block to block of an entry. A block that is told is not told again, nor is one before it.
	Index int64
	Time  time.Time
	Text  string
	// Bad says that it is about something that has gone wrong.
	Bad bool
}

// Append tells what somebody else has to say, once and in the order in which it comes. All of it is told when it returns without an error, or was before;
// otherwise nothing of what is not told yet, or some blocks up to one: whoever says it all again has the rest told.
func (c *Controller) Append(ctx context.Context, release *v1alpha1.Release, said Said) error {
	return retry.OnError(retry.DefaultBackoff, changed, func() error {
		last, err := c.lastPart(ctx, release)
		if err != nil {
			return fmt.Errorf("read the log of release %s/%s: %w", release.Namespace, release.Name, err)
		}
		for more := true; more; {
			var part *v1alpha1.ReleaseLogPart
			if part, more = taking(last, release, said, c.Clock.Now()); part == nil {
				break
			}
			if last, err = c.write(ctx, part); err != nil {
				c.remember(release.UID, nil) // somebody else has written
				return fmt.Errorf("write the log of release %s/%s: %w", release.Namespace, release.Name, err)
			}
			if current, err := c.releases.Releases(release.Namespace).Get(release.Name); err == nil && current.UID == release.UID && !current.Status.Phase.Ended() {
				c.remember(release.UID, last)
			} else {
				c.remember(release.UID, nil) // nobody else forgets it
			}
		}
		return nil
	})
}

// changed reports whether somebody else has written, so that there is nothing for it but to look again.
func changed(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// told is how much of what somebody else says of a stage is told.
type told struct {
	attempt int32
	entry   int64
	index   int64
	bytes   int
}

func toldOf(part *v1alpha1.ReleaseLogPart, stage string) told {
	var out told
	if part != nil {
		if n, err := fmt.Sscanf(part.Spec.Told[saidKey+stage], "%d/%d/%d/%d", &out.attempt, &out.entry, &out.index, &out.bytes); n == 4 && err == nil {
			return out
		}
	}
	return told{index: nothing}
}

// nothing is before the index of every block.
const nothing = math.MinInt64

func (t told) String() string {
	return fmt.Sprintf("%d/%d/%d/%d", t.attempt, t.entry, t.index, t.bytes)
}

// taking returns the last part of a log as it is to be written with what is said, nil if that is told. It reports whether there is more.
func taking(last *v1alpha1.ReleaseLogPart, release *v1alpha1.Release, said Said, now time.Time) (part *v1alpha1.ReleaseLogPart, more bool) {
	known := toldOf(last, said.Stage)
	switch {
	case said.Attempt < known.attempt, said.Attempt == known.attempt && said.Entry != 0 && said.Entry < known.entry:
		return nil, false // by one that has been given up
	case said.Attempt > known.attempt:
		known = told{attempt: said.Attempt, entry: said.Entry, index: nothing}
	case said.Entry > known.entry:
		known = told{attempt: said.Attempt, entry: said.Entry, index: nothing, bytes: known.bytes}
	}
	if !slices.ContainsFunc(said.Blocks, func(b Block) bool { return b.Index > known.index }) {
		return nil, false
	}
	part = following(last, release, true)
	size := sizeOf(part.Spec.Lines)
	for len(said.Blocks) > 0 && size < mostBytes {
		block := said.Blocks[0]
		said.Blocks = said.Blocks[1:]
		if block.Index <= known.index {
			continue
		}
		lines := linesOfBlock(said.Stage, block, now)
		for i := range lines {
			if known.bytes >= mostSaid {
				break
			}
			of := sizeOf(lines[i : i+1])
			if known.bytes += of; known.bytes >= mostSaid {
				lines[i].Message = "| … the rest of what it says is left out: it is too much for a log"
			}
			part.Spec.Lines, size = append(part.Spec.Lines, lines[i]), size+of
		}
		known.index = block.Index
	}
	part.Spec.Told[saidKey+said.Stage] = known.String()
	return part, slices.ContainsFunc(said.Blocks, func(b Block) bool { return b.Index > known.index })
}

// mostOfBlock bounds the lines of a block. A part is written whole.
const mostOfBlock = 100

// linesOfBlock are the lines of a block, which its author has chosen: they are escaped.
func linesOfBlock(stage string, block Block, now time.Time) []v1alpha1.ReleaseLogLine {
	const oldest = 24 * time.Hour
	at := block.Time
	if at.After(now) || now.Sub(at) > oldest {
		at = now
	}
	var out []v1alpha1.ReleaseLogLine
	for line := range strings.Lines(block.Text) {
		if line = strings.TrimRight(line, " \t\r\n"); line == "" {
			continue
		}
		mark := "| "
		if block.Bad {
			mark = "| error: "
		}
		message := text.Line(mark+line, mostLine)
		if len(out) == mostOfBlock {
			message = "| … this block has more lines"
		}
		out = append(out, v1alpha1.ReleaseLogLine{Time: metav1.Time{Time: at.Truncate(time.Second)}, Stage: stage, Message: message})
		if len(out) > mostOfBlock {
			break
		}
	}
	return out
}
