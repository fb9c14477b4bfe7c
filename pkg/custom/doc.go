// Package custom takes custom resources down to clusters and brings their statuses up. They stay above unless they are pinned or a policy
// lists their kind.
//
// The Controller watches the metadata of all custom resources, by the informers of the garbage collector, and of those that concern it
// writes the decision, and the status and breakdown that it makes of what the clusters report. A loop for each cluster watches there the
// kinds of which it is to have something, and brings each object in line. Objects are read whole only when one is projected or its status
// written, and are never decoded into anything: what nobody here knows survives.
package custom
