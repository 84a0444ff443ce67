// Ordered queues without a guard.
import { replaceOnce } from './replace-once.ts'
import type { Twin } from './twin.ts'

const before = 'nothing of its key stands before what is claimed'
const commits = 'within a key the order is that of commits'
const skipping = 'for update of'

/** The part of the statement between two of its names. */
function inPart(
  text: string,
  [from, to]: readonly [string, string],
  change: (part: string) => string,
): string {
  const start = text.indexOf(from)
  const end = text.indexOf(to, start)
  if (start < 0 || end < 0) throw new Error(`expected a part from ${from} to ${to}`)
  return text.slice(0, start) + change(text.slice(start, end)) + text.slice(end)
}

const nothingBefore = /\(v\.key is null\s+or \(select e\.seq[\s\S]*?limit 1\) is null\)/
const noneBeforeDue = /and \(m\.key is null\s+or \(select e\.seq[\s\S]*?limit 1\) is null\)/

export const orderTwins: readonly Twin[] = [
  {
    key: 'order-publish-unlocked',
    guard: 'whoever publishes to a key has its lock before the sequence is asked',
    breaks: {
      insert_messages: (text) =>
        replaceOnce(text, 'pg_advisory_xact_lock(hashtextextended(', '(hashtextextended('),
    },
    scenario: 'order-publish-commit',
    promise: commits,
  },
  {
    key: 'order-publish-late-lock',
    guard: 'the rows are made of what the lock gives: one that is taken after them comes too late',
    breaks: {
      insert_messages: (text) =>
        replaceOnce(
          replaceOnce(text, /from drafts,\s+ordered\n/, 'from drafts\n'),
          "string_agg(seq::text, ',') as seq,",
          "string_agg(seq::text || substr((select locks::text from ordered), 1, 0), ',') as seq,",
        ),
    },
    scenario: 'order-publish-commit',
    promise: commits,
  },
  {
    key: 'order-follow-on-unlocked',
    guard: 'a follow-on has the lock of its key before the sequence is asked',
    breaks: {
      delete_with_follow_ons: (text) =>
        replaceOnce(text, 'count(pg_advisory_xact_lock(k.lock))', 'count(k.lock)'),
    },
    scenario: 'order-follow-on',
    promise: commits,
  },
  {
    key: 'order-join-unlocked',
    guard: 'what joins its key has its lock before the sequence is asked',
    breaks: {
      join_keys: (text) => replaceOnce(text, /and pg_try_advisory_xact_lock\(.*\)\n/, '\n'),
    },
    scenario: 'order-join',
    promise: commits,
  },
  {
    key: 'order-first-skips-locked',
    guard: 'the first of a key is chosen among all rows, and not among those that nobody has locked',
    breaks: {
      claim_in_order: (text) =>
        inPart(text, ['sight as', 'ranked as'], (part) =>
          inPart(
            replaceOnce(part, /limit 1000\)/, `limit 1000 ${skipping} m skip locked)`),
            ['(select 3, f.seq', 'limit $3::int +'],
            (fresh) => replaceOnce(fresh, /limit 1\) is null/, `limit 1 ${skipping} e skip locked) is null`),
          ),
        ),
    },
    scenario: 'order-fresh',
    promise: before,
  },
  {
    key: 'order-fresh-first',
    guard: 'a fresh row is claimed when nothing of its key stands before it',
    breaks: { claim_in_order: (text) => replaceOnce(text, nothingBefore, 'true') },
    scenario: 'order-retry',
    promise: before,
  },
  {
    key: 'order-due-first',
    guard: 'a row that is due is claimed when nothing of its key stands before it',
    breaks: { claim_in_order: (text) => replaceOnce(text, noneBeforeDue, '') },
    scenario: 'order-due',
    promise: before,
  },
  {
    key: 'order-parked',
    guard: 'a dead message that is parked holds its key',
    breaks: {
      claim_in_order: (text) =>
        text.replaceAll(/\((\w\.)failed_at is null or \w\.parked_at is not null\)/g, '$1failed_at is null'),
    },
    scenario: 'order-park',
    promise: before,
  },
  {
    key: 'order-gap',
    guard: 'of those behind the first none is taken behind one that is locked',
    breaks: { claim_in_order: (text) => replaceOnce(text, 'where l.place = l.nth', 'where true') },
    scenario: 'order-middle',
    promise: before,
  },
  {
    key: 'order-rest-leased',
    guard: 'of those behind the first none is taken that somebody has leased',
    breaks: {
      claim_in_order: (text) =>
        inPart(text, ['followers as', 'taken as'], (part) =>
          part.replaceAll(/\(\w\.lease_token is null or \w\.leased_until < now\(\)\)/g, 'true'),
        ),
    },
    scenario: 'order-half-takeover',
    promise: 'only what is free is claimed',
  },
]
