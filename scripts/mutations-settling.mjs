/** Only the holder of a lease writes, everything that ended is written, and what is told has happened. */
export const settling = [
  ...fences(),
  {
    name: 'follow-ons of a lost lease',
    guard: 'Follow-on messages are inserted only if the delete of their message landed.',
    file: 'sql/delete-with-follow-ons.ts',
    find: `    join settled as s
      on s.seq = d.cause`,
    replace: `    left join settled as s
      on s.seq = d.cause`,
    tests: ['tests/integration/follow-on-statements.test.ts'],
  },
  {
    name: 'lease_lost rather than acked',
    guard: 'What did not come back from its write is told as lost, not as done.',
    file: 'runtime/settle-reports.ts',
    find: 'if (landed.has(settlement.lease.seq)) {',
    replace: 'if (landed.size >= 0) {',
    tests: ['runtime/settle-reports.test.ts'],
  },
  {
    name: 'answers that were lost',
    guard: 'A write whose answer was lost may have landed: it is not told as a lost lease for sure.',
    file: 'runtime/settle-writer.ts',
    find: '        mayHaveLanded ||= isOutcomeUnknown(error)\n',
    replace: '',
    tests: ['runtime/settler.test.ts'],
  },
  {
    name: 'burials whose answer was lost',
    guard: 'A burial whose answer was lost is looked for among the dead letters: an alert depends on it.',
    file: 'runtime/settle-writer.ts',
    find: `if (kind !== 'bury' || deadLetters !== 'table') return []`,
    replace: 'if (kind) return []',
    tests: ['runtime/settler-burials.test.ts'],
  },
  {
    name: 'failures that pass',
    guard: 'A login that is refused for a while is no fault of the rows: their acknowledgements are kept.',
    file: 'core/failed-statement.ts',
    find: `  '28',
`,
    replace: '',
    tests: ['core/failed-statement.test.ts'],
  },
  {
    name: 'breaker',
    guard: 'Nothing is claimed while settlements cannot be written.',
    file: 'runtime/engine.ts',
    find: '!settler.isStuck && ',
    replace: '',
    tests: ['runtime/engine-faults.test.ts'],
  },
  {
    name: 'breaker opens',
    guard: 'The breaker opens with the first write that fails.',
    file: 'runtime/settler.ts',
    find: '    isStuck = true\n',
    replace: '',
    tests: ['runtime/settler-breaker.test.ts'],
  },
  {
    name: 'breaker closes last',
    guard: 'The breaker closes when everything that waited is written, not before.',
    file: 'runtime/settler.ts',
    find: `      for (const batch of batchesOf(entries)) await write(batch)
`,
    replace: `      for (const batch of batchesOf(entries)) await write(batch).then(unstuck)
`,
    tests: ['runtime/settler-breaker.test.ts'],
  },
  {
    name: 'unwritten settlements',
    guard: 'Nothing is claimed while thousands of settlements wait behind a slow flush.',
    file: 'runtime/engine.ts',
    find: ' && settler.waiting <= mostUnwritten',
    replace: '',
    tests: ['runtime/engine-faults.test.ts'],
  },
  {
    name: 'retry of a flush',
    guard: 'A flush that fails for a reason that passes is tried again until it is written.',
    file: 'runtime/settle-writer.ts',
    find: 'if (parts.giveUp.aborted) return giveUp(batch, error)',
    replace: 'return giveUp(batch, error)',
    tests: ['runtime/settler.test.ts'],
  },
  {
    name: 'halves of a refused batch',
    guard:
      'A batch that is refused for one row is halved until that row is found, and the others are written.',
    file: 'runtime/settle-writer.ts',
    find: 'batch.entries.length > 1 && !isWholesale(error)',
    replace: 'batch.entries.length < 0',
    tests: ['runtime/settler.test.ts'],
  },
  {
    name: 'order of rows',
    guard: 'Statements name their rows in the order of seq: in opposite orders they deadlock.',
    file: 'core/batching.ts',
    find: 'alike.sort(bySeq)',
    replace: 'alike',
    tests: ['core/batching.test.ts'],
  },
  {
    name: 'one seq in a statement',
    guard: 'No statement names a seq twice: its answer could not tell the two leases apart.',
    file: 'core/batching.ts',
    find: ` &&
      last.entries.at(-1)?.settlement.lease.seq !== entry.settlement.lease.seq`,
    replace: '',
    tests: ['core/batching.test.ts'],
  },
  {
    name: 'quarantine',
    guard: 'A burial that was refused three times becomes a quarantine: it must not be tried for ever.',
    file: 'core/batching.ts',
    find: `refusals < mostRefusals ? 'bury' : 'quarantine'`,
    replace: `'bury'`,
    tests: ['runtime/settler-burials.test.ts'],
  },
  {
    name: 'quarantined for ever',
    guard: 'A quarantined message is due never, so that nobody claims it.',
    file: 'sql/quarantine-dead.ts',
    find: `set due_at = 'infinity',`,
    replace: 'set due_at = now(),',
    tests: ['tests/integration/settle-statements.test.ts'],
    titled: 'a message that is quarantined',
  },
  {
    name: 'snooze is not counted',
    guard: 'A snoozed message has neither an attempt nor a delivery more.',
    file: 'sql/snooze-messages.ts',
    find: 'deliveries = m.deliveries - 1',
    replace: 'deliveries = m.deliveries',
    tests: ['tests/integration/settle-statements.test.ts'],
    titled: 'a message that is snoozed',
  },
]

/** Each statement that ends a delivery has the token in its where clause. */
function fences() {
  const what = {
    'delete-acked': 'deletes a message that succeeded',
    'delete-with-follow-ons': 'deletes a message that succeeded and publishes what follows',
    'reschedule-retried': 'puts a message back that failed',
    'snooze-messages': 'puts a message back that was snoozed',
    'release-leases': 'gives a message back',
    'bury-dead': 'moves a message to the dead letters',
    'quarantine-dead': 'marks a message dead where it is',
  }
  return Object.entries(what).map(([file, does]) => ({
    name: `fence of ${file.replaceAll('-', '_')}`,
    guard: `Only the holder of the lease ${does}.`,
    file: `sql/${file}.ts`,
    find: ' and m.lease_token = s.token',
    replace: '',
    tests: ['tests/integration/settle-statements.test.ts'],
    titled: 'are written by the holder of their lease',
  }))
}
