// biome-ignore-all lint/performance/noBarrelFile: it is loaded as one, and only then
/**
 * What publishing needs beyond one message at a time, loaded in one piece when it is first asked for. One piece, because a bundler cuts what
 * publishers carry into a file for every set of modules that share it, and each such cut costs them some fifty bytes.
 */
export { cancelTimer } from './cancel-timer.ts'
export { pending } from './pending.ts'
export { publishDrafts, through } from './publish-drafts.ts'
export { insertMessage } from './sql/insert-message.ts'
export { insertOne } from './sql/insert-messages.ts'
