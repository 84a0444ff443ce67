const contract = ['tests/conformance/stores.test.ts']
const races = ['tests/integration/replay-all.test.ts']
const costs = ['tests/integration/dead-letter-batch-costs.test.ts']

/** Many dead letters at once: each is changed once, and what is written of it is true. */
export const operating = [
  {
    name: 'operation replays in circles',
    guard:
      'An operation takes only what had failed when it began: what dies again is not replayed in circles.',
    file: 'dead-letter-operations.ts',
    find: 'beforeMicros: started',
    replace: 'beforeMicros: null',
    tests: contract,
    titled: 'does not replay what died after the operation began',
  },
  {
    name: 'operation place',
    guard: 'A batch writes down the place that it has reached: what stays dead is passed.',
    file: 'sql/batch-of-operation.ts',
    find: 'limit 1), o.place)',
    replace: 'limit 0), o.place)',
    tests: contract,
    titled: 'passes what it has looked at',
  },
  {
    name: 'operation skips',
    guard: 'What somebody else is replaying or discarding is his: a batch steps over it.',
    file: 'sql/batch-of-operation.ts',
    find: `   where dead_seq = any(array(select seq from chosen where place = 'moved'))
     for update skip locked`,
    replace: `   where dead_seq = any(array(select seq from chosen where place = 'moved'))
     for update`,
    tests: contract,
    titled: 'steps over it',
    timeoutMs: 10_000,
  },
  {
    name: 'operation limit',
    guard: 'An operation ends when it has replayed as many as it may, in its whole life.',
    file: 'dead-letter-operations.ts',
    find: 'size: Math.min(size, left)',
    replace: 'size',
    tests: contract,
    titled: 'up to its limit',
  },
  {
    name: 'operation turns',
    guard: 'Two who go on with one operation take turns: its row is locked for a batch.',
    file: 'sql/lock-operation.ts',
    find: `
   for update`,
    replace: '',
    tests: races,
    titled: 'take turns',
  },
  {
    name: 'batch of a name that waits',
    guard: 'A timer whose name waits stays dead: the batch does not fail of it.',
    file: 'sql/replay-dead-letters.ts',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: as it stands in the source
    find: 'timer is null or (nth = 1 and ${isNameFree(names)}) as is_named',
    replace: 'timer is null or nth = 1 as is_named',
    tests: contract,
    titled: 'one whose name an older one has taken',
  },
  {
    name: 'batch deletes no more than landed',
    guard: 'A dead letter whose message was kept from the table by somebody else stays dead.',
    file: 'sql/replay-dead-letters.ts',
    find: `    join landed as l
      on l.id = r.id
     and l.queue = r.queue
     and r.copy <= l.copies
`,
    replace: '',
    tests: races,
    titled: 'a trigger of the application',
  },
  {
    name: 'pace goes on',
    guard: 'A pace goes on where the batch before ended: no two batches are due at once.',
    file: 'sql/replay-dead-letters.ts',
    find: `greatest(\${earliest}, \${last} + make_interval(secs => \${step}))`,
    replace: `(\${earliest})`,
    tests: contract,
    titled: 'goes on where it ended',
  },
  {
    name: 'batch gives way',
    guard:
      'A batch that waits for a timer’s name gives way sooner than Postgres ends somebody’s transaction for it.',
    file: 'runtime/operate.ts',
    find: 'const lockMs = 500',
    replace: 'const lockMs = 50_000',
    tests: ['runtime/operate.test.ts', ...races],
    titled: 'gives way',
  },
  {
    name: 'batch isolation',
    guard: 'A batch is read committed, whatever the default: two operators get answers, not errors.',
    file: 'runtime/read-committed.ts',
    find: '    await tx.run(setReadCommitted)\n',
    replace: '',
    tests: races,
    titled: 'gets an answer, not an error',
  },
  {
    name: 'discard of the living',
    guard: 'A message that was replayed while its discard waited is not deleted.',
    file: 'sql/discard-dead-letter.ts',
    find: `
     and failed_at is not null`,
    replace: '',
    tests: contract,
    titled: 'a discard of it by its id waits',
  },
  {
    name: 'operation forgotten',
    guard: 'An operation that has changed something is never forgotten.',
    file: 'sql/forget-operation.ts',
    find: `
   and changed = 0`,
    replace: '',
    tests: contract,
    titled: 'is not forgotten',
  },
  {
    name: 'purge skips',
    guard: 'A purge steps over what somebody is replaying.',
    file: 'sql/purge-dead-letters.ts',
    find: 'for update skip locked',
    replace: 'for update',
    tests: contract,
    titled: 'steps over it',
    timeoutMs: 10_000,
  },
  {
    name: 'one end of the list',
    guard: 'A page of the list begins at its cursor: Postgres does not walk there from the newest.',
    file: 'sql/dead-letters.ts',
    find: `      \`\${spot} >= (\${lead}\${since}, 0)\`,\n`,
    replace: `      \`\${spot} >= (\${lead}\${since}, 0)\`,\n      \`\${spot} <= (\${lead}'infinity', \${largestSeq})\`,\n`,
    tests: costs,
    titled: 'the list beside many',
  },
]
