/** Nobody sleeps while a message waits for him, whatever is lost on the way. */
export const waking = [
  {
    name: 'publishers lock',
    guard: 'A quiet publisher holds P until its commit, so that who lies down meanwhile waits for it.',
    file: 'sql/wake.ts',
    find: `
                when not pg_try_advisory_xact_lock_shared(\${publishersLock(names, queue)}) then false`,
    replace: '',
    tests: ['tests/integration/wake.test.ts'],
  },
  {
    name: 'sleepers lock',
    guard: 'A quiet publisher that finds F taken notifies: somebody sleeps.',
    file: 'sql/wake.ts',
    find: `                then pg_advisory_unlock(\${sleepersLock(names, queue)})
                else false`,
    replace: `                then pg_advisory_unlock(\${sleepersLock(names, queue)})
                else true`,
    tests: ['tests/integration/wake.test.ts'],
  },
  {
    name: 'publishers lock of one message',
    guard: 'Who publishes one message holds P until its commit, too.',
    file: 'sql/wake.ts',
    find: `when case when pg_try_advisory_xact_lock_shared(\${publishers}) then`,
    replace: `when case when \${publishers} is not null then`,
    tests: ['tests/integration/wake.test.ts'],
  },
  {
    name: 'sleepers lock of one message',
    guard: 'Who publishes one message and finds F taken notifies, too.',
    file: 'sql/wake.ts',
    find: `then pg_try_advisory_lock(\${sleepers}) end`,
    replace: 'then true end',
    tests: ['tests/integration/wake.test.ts'],
  },
  {
    name: 'half-full notification queue',
    guard: 'No notification is sent into a half-full queue: on a full one COMMIT fails.',
    file: 'sql/wake.ts',
    find: 'pg_notification_queue_usage() < 0.5',
    replace: 'true',
    tests: ['tests/integration/wake.test.ts'],
    titled: 'a notification queue that is half full',
  },
  {
    name: 'waiting for quiet publishers',
    guard: 'Who lies down is not safe until the publishers that saw nobody asleep have ended.',
    file: 'sql/sleep.ts',
    find: `            else false
       end\``,
    replace: `            else true
       end\``,
    tests: ['tests/integration/guards.test.ts'],
  },
  {
    name: 'one session for all',
    guard: 'Where all share one session (PGlite) nobody is quiet: locks tell nothing of sleepers there.',
    file: 'sql/wake.ts',
    find: `wake === 'quiet' && singleSession ? 'always' : wake`,
    replace: 'wake',
    tests: ['dead-letters.test.ts'],
  },
  {
    name: 'lying down before sleeping',
    guard: 'Before it sleeps, the engine lies down on the queues that have no more.',
    file: 'runtime/engine.ts',
    find: '(await waker.lieDown(exhausted))',
    replace: 'true',
    tests: ['runtime/engine.test.ts'],
  },
  {
    name: 'sweep after lying down',
    guard: 'When the quiet publishers of a queue have ended, it is swept once: they have told nobody.',
    file: 'runtime/waker.ts',
    find: `    down.set(queue, true)
    oweSweep()`,
    replace: '    down.set(queue, true)',
    tests: ['runtime/waker.test.ts'],
  },
  {
    name: 'locks of a lost connection',
    guard: 'On a new listening connection everything is laid down on anew: the locks went with the old one.',
    file: 'runtime/waker.ts',
    find: `      down = new Map()
      ear = listener.ear`,
    replace: '      ear = listener.ear',
    tests: ['runtime/waker.test.ts'],
  },
  {
    name: 'sweep after listening anew',
    guard:
      'When the listening connection was lost or made anew, everything is looked at: notifications were missed.',
    file: 'runtime/works.ts',
    find: 'changed: () => engine.oweSweep(),',
    replace: 'changed: () => {},',
    tests: ['tests/integration/engine.test.ts'],
    titled: 'a listening connection that is cut',
  },
  {
    name: 'heartbeat of the listener',
    guard: 'A connection that listens is asked every half minute whether it still hears.',
    file: 'runtime/listener.ts',
    find: 'await clock.sleep(heartbeatMs, until)',
    replace: 'await clock.sleep(1_000_000 * heartbeatMs, until)',
    tests: ['runtime/listener.test.ts'],
  },
  {
    name: 'word to ourselves',
    guard: 'A connection is not believed to hear before it has heard a word that we sent to ourselves.',
    file: 'runtime/listener.ts',
    find: '        await assertHears(parts, word, until)\n',
    replace: '',
    tests: ['runtime/listener.test.ts'],
  },
  {
    name: 'stop while the word is sent',
    guard: 'A stop that comes while a word to ourselves is being sent does not wait until it is heard.',
    file: 'runtime/listener.ts',
    find: 'if (sent.length === 0 || until.aborted) return',
    replace: 'if (sent.length === 0) return',
    tests: ['runtime/listener.test.ts'],
  },
  {
    name: 'fallback of a sleeper',
    guard: 'A sleeper that nobody woke looks again, at everything: a notification is only a hint.',
    file: 'runtime/engine.ts',
    find: `  if (wakeAt < pollAt) return
  board.mayAllHaveMore()
  sweeps.owe()`,
    replace: '  if (wakeAt < pollAt) return',
    tests: ['runtime/engine.test.ts'],
  },
  {
    name: 'notification during a claim',
    guard: 'A notification that comes while a claim is under way is looked at afterwards.',
    file: 'runtime/board.ts',
    find: 'served.mayHaveMore ||= isFull',
    replace: 'served.mayHaveMore = isFull',
    tests: ['runtime/board.test.ts'],
  },
  {
    name: 'alarm from when the claim was sent',
    guard:
      'The alarm for the next due message counts from when the claim was sent: a slow answer does not make it late.',
    file: 'runtime/claim-answer.ts',
    find: 'nextDueAt: localTime(sentAt, row.nextdue)',
    replace: 'nextDueAt: localTime(answer.receivedAt, row.nextdue)',
    tests: ['runtime/claimer.test.ts', 'tests/integration/timers.test.ts'],
  },
  {
    name: 'alarm of an ordered queue from when the claim was sent',
    guard: 'The same in a queue that is in the order of its keys.',
    file: 'runtime/claim-order.ts',
    find: 'const nextDueAt = localTime(sentAt, row.nextdue)',
    replace: 'const nextDueAt = localTime(receivedAt, row.nextdue)',
    tests: ['runtime/claim-order.test.ts'],
  },
  {
    name: 'alarm that rings early',
    guard: 'A sleep that the timer ends a little early goes on: a claim before its time finds nothing.',
    file: 'runtime/sleeper.ts',
    find: 'while (isNearly(at, clock) && !own.signal.aborted)',
    replace: 'while (false)',
    tests: ['runtime/sleeper.test.ts'],
  },
]
