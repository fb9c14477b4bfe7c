// Package pushes hears from forges that a git repository has changed, so that an application which follows it need not wait for its interval.
//
// A forge logs in to nothing: it signs what it sends with a secret that the application names. Neither is it believed what has changed. All that
// follows from a push is that the repository is asked at once, as somebody who annotates the application could have it.
package pushes
