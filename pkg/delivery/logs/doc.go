// Package logs writes what happens in releases down, line by line.
//
// A log is a few objects of the kind ReleaseLogPart, its parts, which belong to the Release and go with it. They are objects, and no files beside the
// server, because another replica goes on with them and a backup of the store has them; of a kind of their own, and no ConfigMaps, because
// nobody in a namespace may write them, they count against no quota, and no informer of everybody's ConfigMaps keeps them in memory. A log is
// bounded: beyond some 1 MiB its oldest part goes.
//
// Lines follow from the status of a Release. The last part holds, beside the lines, what of the status has been told, in one write: whoever looks
// again, after a restart or in another replica, tells only what is new, and a write that has lost the race is made anew. So nothing is told twice.
// What others say of a stage, such as the plugin that runs it, is told by the same means: a part holds beside its lines up to which of theirs it tells.
// What came and went between two looks is not told, except for what a status has the time of.
package logs
