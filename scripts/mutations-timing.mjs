/** A timer's name is one message's at a time; a dead letter is replayed once. */
export const timing = [
  {
    name: 'conflict, keep',
    guard: 'A second timer of a name that waits is dropped, not an error in the caller’s transaction.',
    file: 'sql/on-conflict.ts',
    find: `return \`\${arbiter} do nothing\``,
    replace: `return ''`,
    tests: ['tests/integration/timer-lives.test.ts'],
    titled: 'timers of one name are one',
  },
  {
    name: 'conflict, replace',
    guard: 'A timer that replaces another brings its own body.',
    file: 'sql/on-conflict.ts',
    find: 'body = excluded.body',
    replace: 'body = m.body',
    tests: ['tests/integration/timer-lives.test.ts'],
    titled: 'timers of one name are the last',
  },
  {
    name: 'conflict, replace while it runs',
    guard: 'A timer that somebody holds is not replaced: its handler runs with what it was given.',
    file: 'sql/on-conflict.ts',
    find: `
   where m.lease_token is null`,
    replace: `
   where true`,
    tests: ['tests/integration/timer-names.test.ts'],
    titled: 'a process of the version before',
  },
  {
    name: 'conflict, replaced for now',
    guard: 'A timer that is replaced by one for now is due: claims have passed its place.',
    file: 'sql/on-conflict.ts',
    find: 'due_at = coalesce(excluded.due_at, statement_timestamp())',
    replace: 'due_at = excluded.due_at',
    tests: ['tests/integration/decision-gaps.test.ts'],
    titled: 'a timer that is replaced by one for now',
  },
  {
    name: 'cancel while it runs',
    guard: 'A timer that somebody holds is not cancelled.',
    file: 'sql/cancel-timer.ts',
    find: `
   and lease_token is null`,
    replace: '',
    tests: ['tests/integration/timer-names.test.ts'],
    titled: 'a process of the version before',
  },
  {
    name: 'name of a claimed timer',
    guard: 'A claimed timer gives its name up, so that the next one can be armed while it runs.',
    file: 'sql/claim-messages.ts',
    find: '         timer_id = null,\n',
    replace: '',
    tests: ['tests/integration/timer-names.test.ts'],
    titled: 'a timer that was claimed',
  },
  {
    name: 'patience for names',
    guard: 'A retry does not wait for somebody who is about to arm its timer’s name.',
    file: 'sql/take-names.ts',
    find: `set_config('lock_timeout', '100ms', true)`,
    replace: `set_config('lock_timeout', '0', true)`,
    tests: ['tests/integration/timer-names.test.ts'],
    titled: 'does not wait for somebody who is about to arm its name',
    timeoutMs: 5_000,
  },
  {
    name: 'lock of a replay, moved',
    guard: 'Of two operators who replay a moved dead letter the second waits, and is told.',
    file: 'sql/replay-dead-letter.ts',
    find: `
   where dead_seq = (select seq from newest where place = 'moved')
     for update`,
    replace: `
   where dead_seq = (select seq from newest where place = 'moved')`,
    tests: ['tests/integration/replay-races.test.ts'],
  },
  {
    name: 'lock of a replay, quarantined',
    guard: 'Of two operators who replay a quarantined message the second waits, and is told.',
    file: 'sql/replay-dead-letter.ts',
    find: `
     and failed_at is not null
     for update`,
    replace: `
     and failed_at is not null`,
    tests: ['tests/integration/replay-races.test.ts'],
  },
  {
    name: 'replay that did not land',
    guard: 'A dead letter goes only if its message was inserted.',
    file: 'sql/replay-dead-letter.ts',
    find: `from replayed where place = 'moved')
     and exists (select from moved)`,
    replace: `from replayed where place = 'moved')`,
    tests: ['tests/integration/replay.test.ts'],
    titled: 'changes nothing while a timer',
  },
  {
    name: 'replay in read committed',
    guard: 'A replay is read committed: who comes second gets an answer, not an error.',
    file: 'runtime/read-committed.ts',
    find: '    await tx.run(setReadCommitted)\n',
    replace: '',
    tests: ['tests/integration/replay-races.test.ts'],
  },
  {
    name: 'name of a replayed timer',
    guard: 'A quarantined timer is not freed while another of its name waits.',
    file: 'sql/replay-dead-letter.ts',
    find: `and (r.is_named or r.lands = 'in_place')`,
    replace: '',
    tests: ['tests/integration/replay.test.ts'],
    titled: 'changes nothing while a timer',
  },
]
