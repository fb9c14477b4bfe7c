package pushes

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Headers by which forges show that they know the secret.
const (
	headerGitHub    = "X-Hub-Signature-256" // of Gitea and Forgejo too
	headerBitbucket = "X-Hub-Signature"
	headerGitLab    = "X-Gitlab-Token"
)

// plainSignatures have the signature without a word before it.
var plainSignatures = []string{"X-Forgejo-Signature", "X-Gitea-Signature", "X-Gogs-Signature"}

// signed reports whether a request shows that whoever sends it knows the secret: by a HMAC-SHA256 of the body, or as GitLab does by the secret itself.
// It takes the same time for every secret.
func signed(header http.Header, body, secret []byte) bool {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	want := mac.Sum(nil)
	ok := sameToken(header.Get(headerGitLab), secret)
	for _, name := range []string{headerGitHub, headerBitbucket} {
		if digest, found := strings.CutPrefix(header.Get(name), "sha256="); found && sameDigest(digest, want) {
			ok = true
		}
	}
	for _, name := range plainSignatures {
		if sameDigest(header.Get(name), want) {
			ok = true
		}
	}
	return ok
}

func sameDigest(digest string, want []byte) bool {
	got, err := hex.DecodeString(digest)
	return err == nil && hmac.Equal(got, want)
}

// sameToken compares hashes, so that not even the length of the secret shows.
func sameToken(token string, secret []byte) bool {
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256(secret)
	return hmac.Equal(got[:], want[:])
}

// forge is how a kind of forge announces pushes: the header that names the event, the events that are pushes, and how their refs are read.
type forge struct {
	header string
	pushes []string
	refs   func(body []byte) ([]string, error)
}

var forges = []forge{
	{"X-Forgejo-Event", []string{"push"}, refOf},
	{"X-Gitea-Event", []string{"push"}, refOf},
	{"X-Gogs-Event", []string{"push"}, refOf},
	{"X-GitHub-Event", []string{"push"}, refOf},
	{"X-Gitlab-Event", []string{"Push Hook", "Tag Push Hook"}, refOf},
	{"X-Event-Key", []string{"repo:push"}, bitbucketCloud},
	{"X-Event-Key", []string{"repo:refs_changed"}, bitbucketServer},
}

// refsOf are the full names of the refs that a request tells of, such as refs/heads/main. There are none if it is about something else than a push.
func refsOf(header http.Header, body []byte) ([]string, error) {
	for _, forge := range forges {
		if !slices.Contains(forge.pushes, header.Get(forge.header)) {
			continue
		}
		refs, err := forge.refs(body)
		if err != nil {
			return nil, fmt.Errorf("the body is not that of %s %q as JSON", forge.header, header.Get(forge.header))
		}
		return refs, nil
	}
	return nil, nil
}

func refOf(body []byte) ([]string, error) {
	var push struct {
		Ref string `json:"ref"`
	}
	err := json.Unmarshal(body, &push)
	return []string{push.Ref}, err
}

// bitbucketCloud names branches and tags without their folder. One that is new has no old state, and one that was deleted no new one.
func bitbucketCloud(body []byte) ([]string, error) {
	type state struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	var told struct {
		Push struct {
			Changes []struct {
				Old *state `json:"old"`
				New *state `json:"new"`
			} `json:"changes"`
		} `json:"push"`
	}
	err := json.Unmarshal(body, &told)
	var refs []string
	for _, change := range told.Push.Changes {
		for _, of := range []*state{change.Old, change.New} {
			switch {
			case of == nil:
			case of.Type == "tag":
				refs = append(refs, tags+of.Name)
			default:
				refs = append(refs, branches+of.Name)
			}
		}
	}
	return refs, err
}

func bitbucketServer(body []byte) ([]string, error) {
	var told struct {
		Changes []struct {
			Ref struct {
				ID string `json:"id"`
			} `json:"ref"`
		} `json:"changes"`
	}
	err := json.Unmarshal(body, &told)
	var refs []string
	for _, change := range told.Changes {
		refs = append(refs, change.Ref.ID)
	}
	return refs, err
}
