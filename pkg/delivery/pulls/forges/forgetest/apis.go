package forgetest

import (
	"net/http"
	"strconv"
	"strings"
)

// object is one of JSON.
type object = map[string]any

func number(r *http.Request, key string, otherwise int) int {
	if out, err := strconv.Atoi(r.URL.Query().Get(key)); err == nil {
		return out
	}
	return otherwise
}

// all makes answers of pull requests.
func all(pulls []*Pull, show func(*Pull) object) []object {
	out := []object{}
	for _, pull := range pulls {
		out = append(out, show(pull))
	}
	return out
}

// github is the API of GitHub, and that of Gitea, which is made after it: they differ in how a pull request says that it is merged.
func (f *Forge) github(root, merged string) http.Handler {
	show := func(p *Pull) object {
		state, at, is := "open", any(nil), p.State == "merged"
		if p.State != "open" {
			state = "closed"
		}
		if is {
			at = "2026-01-02T03:04:05Z"
		}
		from := "acme/fleet"
		if p.Fork {
			from = "mallory/fleet"
		}
		out := object{
			"number": p.Number, "state": state, "title": p.Title, "body": p.Body, "merged_at": at, "html_url": "https://evil.example.com/phishing",
			"head": object{"ref": p.Head, "repo": object{"full_name": from}}, "base": object{"ref": p.Base, "repo": object{"full_name": "acme/fleet"}},
		}
		if merged == "merged" {
			out["merged"] = is
		}
		return out
	}
	mux, repository := http.NewServeMux(), root+"/repos/acme/fleet"
	f.handle(mux, "GET "+repository+"/pulls", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		size := number(r, "per_page", number(r, "limit", 30))
		state := map[string]string{"open": "open"}[r.URL.Query().Get("state")]
		answer(w, http.StatusOK, all(f.newest(state, size*(number(r, "page", 1)-1), size), show))
	})
	f.handle(mux, "GET "+repository+"/pulls/{number}", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if pull := f.found(w, r); pull != nil {
			answer(w, http.StatusOK, show(pull))
		}
	})
	f.handle(mux, "POST "+repository+"/pulls", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		pull := f.create(w, Pull{Title: textOf(body, "title"), Body: textOf(body, "body"), Head: textOf(body, "head"), Base: textOf(body, "base")}, http.StatusUnprocessableEntity)
		if pull != nil {
			answer(w, http.StatusCreated, show(pull))
		}
	})
	f.handle(mux, "POST "+repository+"/issues/{number}/comments", func(w http.ResponseWriter, r *http.Request, body map[string]any) {
		if pull := f.found(w, r); pull != nil {
			pull.Comments = append(pull.Comments, textOf(body, "body"))
			answer(w, http.StatusCreated, object{"id": 1, "body": textOf(body, "body")})
		}
	})
	f.handle(mux, "PATCH "+repository+"/pulls/{number}", func(w http.ResponseWriter, r *http.Request, body map[string]any) {
		if pull := f.found(w, r); pull != nil {
			pull.State = textOf(body, "state")
			answer(w, http.StatusOK, show(pull))
		}
	})
	return mux
}

func (f *Forge) gitlab() http.Handler {
	show := func(p *Pull) object {
		from := 7
		if p.Fork {
			from = 8
		}
		return object{
			"id": 1000 + p.Number, "iid": p.Number, "state": map[string]string{"open": "opened"}[p.State] + map[string]string{"merged": "merged", "closed": "closed"}[p.State],
			"title": p.Title, "description": p.Body, "source_branch": p.Head, "target_branch": p.Base, "source_project_id": from, "target_project_id": 7, "project_id": 7,
			"web_url": "https://evil.example.com/phishing",
		}
	}
	mux, requests := http.NewServeMux(), "/api/v4/projects/{project}/merge_requests"
	of := func(handler func(w http.ResponseWriter, r *http.Request, body map[string]any)) func(w http.ResponseWriter, r *http.Request, body map[string]any) {
		return func(w http.ResponseWriter, r *http.Request, body map[string]any) {
			if r.PathValue("project") != "acme/teams/shop/fleet" {
				http.Error(w, `{"message": "404 Project Not Found"}`, http.StatusNotFound)
				return
			}
			handler(w, r, body)
		}
	}
	f.handle(mux, "GET "+requests, of(func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		size := number(r, "per_page", 20)
		state := map[string]string{"opened": "open"}[r.URL.Query().Get("state")]
		answer(w, http.StatusOK, all(f.newest(state, size*(number(r, "page", 1)-1), size), show))
	}))
	f.handle(mux, "GET "+requests+"/{number}", of(func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if pull := f.found(w, r); pull != nil {
			answer(w, http.StatusOK, show(pull))
		}
	}))
	f.handle(mux, "POST "+requests, of(func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		pull := f.create(w, Pull{Title: textOf(body, "title"), Body: textOf(body, "description"), Head: textOf(body, "source_branch"), Base: textOf(body, "target_branch")}, http.StatusConflict)
		if pull != nil {
			answer(w, http.StatusCreated, show(pull))
		}
	}))
	f.handle(mux, "POST "+requests+"/{number}/notes", of(func(w http.ResponseWriter, r *http.Request, body map[string]any) {
		if pull := f.found(w, r); pull != nil {
			pull.Comments = append(pull.Comments, textOf(body, "body"))
			answer(w, http.StatusCreated, object{"id": 1})
		}
	}))
	f.handle(mux, "PUT "+requests+"/{number}", of(func(w http.ResponseWriter, r *http.Request, body map[string]any) {
		if pull := f.found(w, r); pull != nil && textOf(body, "state_event") == "close" {
			pull.State = "closed"
			answer(w, http.StatusOK, show(pull))
		}
	}))
	return mux
}

func (f *Forge) bitbucket() http.Handler {
	ref := func(branch, project string) object {
		return object{"id": "refs/heads/" + branch, "displayId": branch, "repository": object{"slug": "fleet", "project": object{"key": project}}}
	}
	show := func(p *Pull) object {
		from := "SHOP"
		if p.Fork {
			from = "~MALLORY"
		}
		return object{
			"id": p.Number, "version": 3, "state": map[string]string{"open": "OPEN", "merged": "MERGED", "closed": "DECLINED"}[p.State], "open": p.State == "open", "closed": p.State != "open",
			"title": p.Title, "description": p.Body, "fromRef": ref(p.Head, from), "toRef": ref(p.Base, "SHOP"),
			"links": object{"self": []object{{"href": "https://evil.example.com/phishing"}}},
		}
	}
	mux, requests := http.NewServeMux(), "/rest/api/1.0/projects/SHOP/repos/fleet/pull-requests"
	f.handle(mux, "GET "+requests, func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		start, size := number(r, "start", 0), number(r, "limit", 25)
		state := "open"
		if strings.EqualFold(r.URL.Query().Get("state"), "ALL") {
			state = ""
		}
		pulls := f.newest(state, start, size)
		answer(w, http.StatusOK, object{"values": all(pulls, show), "isLastPage": len(pulls) < size, "start": start, "limit": size, "nextPageStart": start + len(pulls)})
	})
	f.handle(mux, "GET "+requests+"/{number}", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if pull := f.found(w, r); pull != nil {
			answer(w, http.StatusOK, show(pull))
		}
	})
	f.handle(mux, "POST "+requests, func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		pull := f.create(w, Pull{
			Title: textOf(body, "title"), Body: textOf(body, "description"),
			Head: strings.TrimPrefix(textOf(body, "fromRef", "id"), "refs/heads/"), Base: strings.TrimPrefix(textOf(body, "toRef", "id"), "refs/heads/"),
		}, http.StatusConflict)
		if pull != nil {
			answer(w, http.StatusCreated, show(pull))
		}
	})
	f.handle(mux, "POST "+requests+"/{number}/comments", func(w http.ResponseWriter, r *http.Request, body map[string]any) {
		if pull := f.found(w, r); pull != nil {
			pull.Comments = append(pull.Comments, textOf(body, "text"))
			answer(w, http.StatusCreated, object{"id": 1})
		}
	})
	f.handle(mux, "POST "+requests+"/{number}/decline", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if r.URL.Query().Get("version") != "3" || r.Header.Get("X-Atlassian-Token") != "no-check" {
			http.Error(w, `{"errors": [{"message": "it has changed since"}]}`, http.StatusConflict)
			return
		}
		if pull := f.found(w, r); pull != nil {
			pull.State = "closed"
			answer(w, http.StatusOK, show(pull))
		}
	})
	return mux
}

func (f *Forge) azure() http.Handler {
	show := func(p *Pull) object {
		out := object{
			"pullRequestId": p.Number, "status": map[string]string{"open": "active", "merged": "completed", "closed": "abandoned"}[p.State],
			"title": p.Title, "description": p.Body, "sourceRefName": "refs/heads/" + p.Head, "targetRefName": "refs/heads/" + p.Base, "url": "https://evil.example.com/phishing",
		}
		if p.Fork {
			out["forkSource"] = object{"name": "refs/heads/" + p.Head, "repository": object{"id": "other"}}
		}
		return out
	}
	mux, requests := http.NewServeMux(), "/acme/shop/_apis/git/repositories/fleet/pullrequests"
	versioned := func(handler func(w http.ResponseWriter, r *http.Request, body map[string]any)) func(w http.ResponseWriter, r *http.Request, body map[string]any) {
		return func(w http.ResponseWriter, r *http.Request, body map[string]any) {
			if r.URL.Query().Get("api-version") == "" {
				http.Error(w, `{"message": "No api-version was supplied"}`, http.StatusBadRequest)
				return
			}
			handler(w, r, body)
		}
	}
	f.handle(mux, "GET "+requests, versioned(func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		state := "open"
		if r.URL.Query().Get("searchCriteria.status") == "all" {
			state = ""
		}
		pulls := f.newest(state, number(r, "$skip", 0), number(r, "$top", 100))
		answer(w, http.StatusOK, object{"value": all(pulls, show), "count": len(pulls)})
	}))
	f.handle(mux, "GET "+requests+"/{number}", versioned(func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if pull := f.found(w, r); pull != nil {
			answer(w, http.StatusOK, show(pull))
		}
	}))
	f.handle(mux, "POST "+requests, versioned(func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		pull := f.create(w, Pull{
			Title: textOf(body, "title"), Body: textOf(body, "description"),
			Head: strings.TrimPrefix(textOf(body, "sourceRefName"), "refs/heads/"), Base: strings.TrimPrefix(textOf(body, "targetRefName"), "refs/heads/"),
		}, http.StatusConflict)
		if pull != nil {
			answer(w, http.StatusCreated, show(pull))
		}
	}))
	f.handle(mux, "POST "+requests+"/{number}/threads", versioned(func(w http.ResponseWriter, r *http.Request, body map[string]any) {
		if pull := f.found(w, r); pull != nil {
			comments, _ := body["comments"].([]any)
			for _, comment := range comments {
				said, _ := comment.(map[string]any)
				pull.Comments = append(pull.Comments, textOf(said, "content"))
			}
			answer(w, http.StatusOK, object{"id": 1})
		}
	}))
	f.handle(mux, "PATCH "+requests+"/{number}", versioned(func(w http.ResponseWriter, r *http.Request, body map[string]any) {
		if pull := f.found(w, r); pull != nil && textOf(body, "status") == "abandoned" {
			pull.State = "closed"
			answer(w, http.StatusOK, show(pull))
		}
	}))
	return mux
}
