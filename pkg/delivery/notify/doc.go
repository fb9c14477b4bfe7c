// Package notify tells others of what happens in applications: by webhooks, and in Slack.
//
// What there is to tell follows from the status of an Application or a Release as it is, not from its changes, so nothing is missed while nobody
// looks. What was told is an annotation beside that status. A notice is sent, and then noted: one whose note is lost with the process is sent
// again, with the same id, by which its receiver knows it. One that cannot be sent is tried again, less and less often, for an hour.
//
// The two forms are a POST each. The libraries that have them, such as argoproj/notifications-engine, come with a configuration, templates and
// clients of Kubernetes of their own, for other versions than ours.
package notify
