package pulls

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/pulls/rewrite"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// names are what a pull request and its branch are called. They follow from the request, so that a pull request is found again.
type names struct {
	// folder begins the names of all branches that promote to the environment, branch is that for the version.
	folder, branch string
	// title is that of the pull request, and the first line of the commit's message.
	title string
}

// mostTitle bounds a title, in bytes.
const mostTitle = 200

func namesOf(r Request) names {
	kind := "promotion"
	if r.Pipeline.Group == weave.OlderGroup {
		kind += "-wego" // a pipeline of the other group may have the same name
	}
	folder := strings.Join([]string{kind, part(r.Pipeline.Namespace), part(r.Pipeline.Name), part(r.Environment)}, "/") + "/"
	return names{
		folder: folder,
		branch: folder + shortened(r.Version.Revision) + "-" + hashOf(r.Version.Revision),
		title:  text.Line(fmt.Sprintf("Promote %s/%s in %s to %s", r.Pipeline.Namespace, r.Pipeline.Name, r.Environment, r.Version.Revision), mostTitle), // as Weave GitOps has it
	}
}

// attempt names the branch of the nth pull request for the version, counted from 1.
func (n names) attempt(nth int) string {
	if nth == 1 {
		return n.branch
	}
	return n.branch + "-" + strconv.Itoa(nth)
}

// nth returns which pull request for the version a branch is that of; 0 if it is of another version.
func (n names) nth(branch string) int {
	switch rest, is := strings.CutPrefix(branch, n.branch); {
	case !is:
		return 0
	case rest == "":
		return 1
	default:
		nth, err := strconv.Atoi(strings.TrimPrefix(rest, "-"))
		if err != nil || n.attempt(nth) != branch {
			return 0
		}
		return nth
	}
}

var (
	// usual is what a part of the name of a branch may be everywhere.
	usual = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9_-]|\.[A-Za-z0-9])*$`)
	// unusual are the characters that it may not have.
	unusual = regexp.MustCompile(`[^A-Za-z0-9_-]+|^[_-]+`)
)

// mostPart bounds a part of the name of a branch, in bytes.
const mostPart = 60

// part is a name as a part of the name of a branch. What cannot be one as it is, is told apart by a hash.
func part(name string) string {
	if usual.MatchString(name) && len(name) <= mostPart && !strings.HasSuffix(name, ".lock") {
		return name
	}
	return shortened(name) + "-" + hashOf(name)
}

// shortened is a beginning of a text that may be a part of the name of a branch.
func shortened(s string) string {
	if !usual.MatchString(s) {
		s = strings.Trim(unusual.ReplaceAllString(s, "-"), "-")
	}
	return strings.TrimRight(s[:min(len(s), mostPart)], "-._")
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

// description is the body of the pull request: what changes, and in the end what Weave GitOps finds its pull requests by.
func description(r Request, changes []rewrite.Change) string {
	return fmt.Sprintf("%s of pipeline %s/%s gets %s.\n\n%s\n<details>\n<summary>metadata</summary>\n!!! DO NOT EDIT !!!\n\n%s/%s/%s\n</details>\n",
		code(r.Environment), r.Pipeline.Namespace, r.Pipeline.Name, code(r.Version.Revision), list(changes, code), r.Pipeline.Namespace, r.Pipeline.Name, r.Environment)
}

// mostList bounds the list of changes, in bytes: Azure DevOps takes descriptions of 4,000 characters.
const mostList = 3000

// list has a line for each change.
func list(changes []rewrite.Change, as func(string) string) string {
	var out strings.Builder
	for i, change := range changes {
		line := "- " + as(change.String()) + "\n"
		if out.Len()+len(line) > mostList {
			fmt.Fprintf(&out, "- and %d more\n", len(changes)-i)
			break
		}
		out.WriteString(line)
	}
	return out.String()
}

// code is a text that a forge shows as it is: it calls nobody and leads nowhere.
func code(s string) string {
	return "`" + strings.ReplaceAll(text.Line(s, mostShown), "`", "'") + "`"
}

// mostShown bounds what is shown of what others have written, in bytes.
const mostShown = 600
