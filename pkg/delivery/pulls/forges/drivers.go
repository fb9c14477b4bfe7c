package forges

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// object is one of JSON that is sent.
type object = map[string]any

// answered takes an answer apart.
func answered[T any](answer []byte) (T, error) {
	var out T
	err := json.Unmarshal(answer, &out)
	return out, err
}

// each takes pull requests out of a list of them.
func each[T interface{ pull() Pull }](answers []T, err error) ([]Pull, error) {
	var out []Pull
	for _, answer := range answers {
		out = append(out, answer.pull())
	}
	return out, err
}

const heads = "refs/heads/"

// github is GitHub, in the cloud and elsewhere.
type github struct{ repository string }

// githubPull is also that of Gitea, whose API is made after GitHub's.
type githubPull struct {
	Number   int     `json:"number"`
	State    string  `json:"state"`
	Merged   bool    `json:"merged"`
	MergedAt *string `json:"merged_at"`
	Head     struct {
		Ref  string            `json:"ref"`
		Repo *githubRepository `json:"repo"`
	} `json:"head"`
	Base struct {
		Ref  string            `json:"ref"`
		Repo *githubRepository `json:"repo"`
	} `json:"base"`
}

type githubRepository struct {
	FullName string `json:"full_name"`
}

func (p githubPull) pull() Pull {
	out := Pull{Number: p.Number, Branch: p.Head.Ref, Base: p.Base.Ref}
	out.Own = p.Head.Repo != nil && p.Base.Repo != nil && p.Head.Repo.FullName != "" && p.Head.Repo.FullName == p.Base.Repo.FullName
	switch {
	case p.Merged || p.MergedAt != nil:
		out.State = Merged
	case p.State != "open":
		out.State = Closed
	}
	return out
}

func (github) username() string       { return "x-access-token" }
func (g github) pulls() string        { return g.repository + "/pulls" }
func (github) pull(number int) string { return fmt.Sprintf("/pull/%d", number) }
func (github) create(in Input) any {
	return object{"title": in.Title, "body": in.Body, "head": in.Branch, "base": in.Base}
}
func (g github) close(pull Pull) order {
	return order{http.MethodPatch, fmt.Sprintf("%s/pulls/%d", g.repository, pull.Number), object{"state": "closed"}}
}
func (github) read(a []byte) (Pull, error) {
	answer, err := answered[githubPull](a)
	return answer.pull(), err
}

func (github) readAll(a []byte) ([]Pull, error) { return each(answered[[]githubPull](a)) }

func (github) list(base string, page int) url.Values {
	return url.Values{"state": {"all"}, "base": {base}, "sort": {"created"}, "direction": {"desc"}, "per_page": {strconv.Itoa(pageSize)}, "page": {strconv.Itoa(page + 1)}}
}

func (g github) comment(pull Pull, said string) order {
	return order{http.MethodPost, fmt.Sprintf("%s/issues/%d/comments", g.repository, pull.Number), object{"body": said}}
}

// gitea is Gitea, and Forgejo.
type gitea struct{ github }

func (gitea) username() string       { return "git" }
func (gitea) pull(number int) string { return fmt.Sprintf("/pulls/%d", number) }

func (gitea) list(_ string, page int) url.Values {
	return url.Values{"state": {"all"}, "limit": {strconv.Itoa(pageSize)}, "page": {strconv.Itoa(page + 1)}} // the newest first
}

// gitlab is GitLab, in the cloud and elsewhere.
type gitlab struct{ project string }

type gitlabPull struct {
	Number int    `json:"iid"`
	State  string `json:"state"`
	Source string `json:"source_branch"`
	Target string `json:"target_branch"`
	From   int64  `json:"source_project_id"`
	To     int64  `json:"target_project_id"`
}

func (p gitlabPull) pull() Pull {
	states := map[string]State{"merged": Merged, "closed": Closed} // one that is locked is about to be merged
	return Pull{Number: p.Number, Branch: p.Source, Base: p.Target, Own: p.From != 0 && p.From == p.To, State: states[p.State]}
}

func (gitlab) username() string       { return "oauth2" }
func (g gitlab) pulls() string        { return g.project + "/merge_requests" }
func (gitlab) pull(number int) string { return fmt.Sprintf("/-/merge_requests/%d", number) }

func (gitlab) create(in Input) any {
	return object{"title": in.Title, "description": in.Body, "source_branch": in.Branch, "target_branch": in.Base}
}

func (g gitlab) close(pull Pull) order {
	return order{http.MethodPut, fmt.Sprintf("%s/%d", g.pulls(), pull.Number), object{"state_event": "close"}}
}

func (gitlab) read(a []byte) (Pull, error) {
	answer, err := answered[gitlabPull](a)
	return answer.pull(), err
}

func (gitlab) readAll(a []byte) ([]Pull, error) { return each(answered[[]gitlabPull](a)) }

func (gitlab) list(base string, page int) url.Values {
	return url.Values{
		"state": {"all"}, "target_branch": {base}, "order_by": {"created_at"}, "sort": {"desc"}, "per_page": {strconv.Itoa(pageSize)}, "page": {strconv.Itoa(page + 1)},
	}
}

func (g gitlab) comment(pull Pull, said string) order {
	return order{http.MethodPost, fmt.Sprintf("%s/%d/notes", g.pulls(), pull.Number), object{"body": said}}
}

// bitbucket is Bitbucket Server, which is also called Data Center.
type bitbucket struct{ project, slug, repository string }

type bitbucketPull struct {
	Number  int          `json:"id"`
	Version int          `json:"version"`
	State   string       `json:"state"`
	From    bitbucketRef `json:"fromRef"`
	To      bitbucketRef `json:"toRef"`
}

type bitbucketRef struct {
	ID         string `json:"id"`
	Repository struct {
		Slug    string `json:"slug"`
		Project struct {
			Key string `json:"key"`
		} `json:"project"`
	} `json:"repository"`
}

func (p bitbucketPull) pull() Pull {
	states := map[string]State{"MERGED": Merged, "DECLINED": Closed}
	return Pull{
		Number: p.Number, Branch: strings.TrimPrefix(p.From.ID, heads), Base: strings.TrimPrefix(p.To.ID, heads), State: states[p.State], version: p.Version,
		Own: p.From.Repository.Slug != "" && p.From.Repository == p.To.Repository,
	}
}

func (bitbucket) username() string       { return "x-token-auth" }
func (b bitbucket) pulls() string        { return b.repository + "/pull-requests" }
func (bitbucket) pull(number int) string { return fmt.Sprintf("/pull-requests/%d", number) }

func (b bitbucket) create(in Input) any {
	ref := func(branch string) object {
		return object{"id": heads + branch, "repository": object{"slug": b.slug, "project": object{"key": b.project}}}
	}
	return object{"title": in.Title, "description": in.Body, "fromRef": ref(in.Branch), "toRef": ref(in.Base)}
}

func (b bitbucket) close(pull Pull) order {
	return order{http.MethodPost, fmt.Sprintf("%s/%d/decline?version=%d", b.pulls(), pull.Number, pull.version), object{}}
}

func (bitbucket) read(a []byte) (Pull, error) {
	answer, err := answered[bitbucketPull](a)
	return answer.pull(), err
}

func (bitbucket) readAll(a []byte) ([]Pull, error) {
	answer, err := answered[struct {
		Values []bitbucketPull `json:"values"`
	}](a)
	return each(answer.Values, err)
}

func (bitbucket) list(base string, page int) url.Values {
	return url.Values{"state": {"ALL"}, "order": {"NEWEST"}, "at": {heads + base}, "limit": {strconv.Itoa(pageSize)}, "start": {strconv.Itoa(page * pageSize)}}
}

func (b bitbucket) comment(pull Pull, said string) order {
	return order{http.MethodPost, fmt.Sprintf("%s/%d/comments", b.pulls(), pull.Number), object{"text": said}}
}

// azure is Azure DevOps, in the cloud and elsewhere.
type azure struct{}

// azureVersion is the version of its API that all its servers since 2020 know.
const azureVersion = "api-version=6.0"

type azurePull struct {
	Number int    `json:"pullRequestId"`
	Status string `json:"status"`
	Source string `json:"sourceRefName"`
	Target string `json:"targetRefName"`
	Fork   *struct {
		Name string `json:"name"`
	} `json:"forkSource"`
}

func (p azurePull) pull() Pull {
	states := map[string]State{"completed": Merged, "abandoned": Closed}
	return Pull{Number: p.Number, Branch: strings.TrimPrefix(p.Source, heads), Base: strings.TrimPrefix(p.Target, heads), Own: p.Fork == nil, State: states[p.Status]}
}

func (azure) username() string       { return "manifold" }
func (azure) pulls() string          { return "/pullrequests" }
func (azure) pull(number int) string { return fmt.Sprintf("/pullrequest/%d", number) }

func (azure) create(in Input) any {
	return object{"title": in.Title, "description": in.Body, "sourceRefName": heads + in.Branch, "targetRefName": heads + in.Base}
}

func (azure) close(pull Pull) order {
	return order{http.MethodPatch, fmt.Sprintf("/pullrequests/%d", pull.Number), object{"status": "abandoned"}}
}

func (azure) read(a []byte) (Pull, error) {
	answer, err := answered[azurePull](a)
	return answer.pull(), err
}

func (azure) readAll(a []byte) ([]Pull, error) {
	answer, err := answered[struct {
		Value []azurePull `json:"value"`
	}](a)
	return each(answer.Value, err)
}

func (azure) list(base string, page int) url.Values {
	return url.Values{
		"searchCriteria.status": {"all"}, "searchCriteria.targetRefName": {heads + base}, "$top": {strconv.Itoa(pageSize)}, "$skip": {strconv.Itoa(page * pageSize)},
	}
}

func (azure) comment(pull Pull, said string) order {
	return order{http.MethodPost, fmt.Sprintf("/pullrequests/%d/threads", pull.Number), object{
		"comments": []object{{"parentCommentId": 0, "content": said, "commentType": "text"}}, "status": "closed",
	}}
}
