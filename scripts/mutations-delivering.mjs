const controller = ['runtime/lazy-controller.test.ts']
const alarms = ['runtime/alarms.test.ts']
const contexts = ['runtime/context.test.ts']

/** What a delivery has only if somebody asks for it, and the time that it has. */
export const delivering = [
  {
    name: 'signal: first reason',
    guard: 'A signal that has aborted keeps its first reason.',
    file: 'runtime/lazy-controller.ts',
    find: '    if (this.#isAborted) return\n',
    replace: '',
    tests: controller,
  },
  {
    name: 'signal: asked for late',
    guard: 'A signal that is asked for after the abort has aborted.',
    file: 'runtime/lazy-controller.ts',
    find: '      if (this.#isAborted) this.#controller.abort(this.#reason)\n',
    replace: '',
    tests: controller,
  },
  {
    name: 'signal: copies of a context',
    guard: 'A copy of a context has its signal.',
    file: 'runtime/context.ts',
    find: 'const signalWhenAsked = {\n  enumerable: true,',
    replace: 'const signalWhenAsked = {\n  enumerable: false,',
    tests: contexts,
  },
  {
    name: 'alarms: earlier than the others',
    guard: 'A handler with less time than those that run is told when its own is over.',
    file: 'runtime/alarms.ts',
    find: 'else if (sleeper.wakesAt !== null && alarm.at < sleeper.wakesAt) sleeper.wake()',
    replace: '',
    tests: alarms,
  },
  {
    name: 'alarms: cleared',
    guard: 'A handler that has ended is not told that its time is over.',
    file: 'runtime/alarms.ts',
    find: '      alarms.delete(alarm)\n      if (alarms.size === 0)',
    replace: '      if (alarms.size === 0)',
    tests: alarms,
  },
  {
    name: 'alarms: none left',
    guard: 'No timer is left when no handler is timed: the process can end.',
    file: 'runtime/alarms.ts',
    find: '      if (alarms.size === 0) sleeper.wake()\n',
    replace: '',
    tests: alarms,
  },
  {
    name: 'alarms: not before',
    guard: 'A handler is not told before its time is over, when that of another is.',
    file: 'runtime/alarms.ts',
    find: '        if (alarm.at > now) continue\n',
    replace: '',
    tests: alarms,
  },
  {
    name: 'handler within the call',
    guard: 'No handler runs within the call that takes its message.',
    file: 'runtime/deliver.ts',
    find: '  const read = await readAll(helds, owner)\n',
    replace:
      '  const given = readAll(helds, owner)\n  const read = given instanceof Promise ? await given : given\n',
    tests: ['runtime/dispatcher.test.ts'],
  },
  {
    name: 'alarms: whose context',
    guard: 'Who listens to a signal hears it in the async context of its own delivery.',
    file: 'runtime/alarms.ts',
    find: 'ring: () => own.runInAsyncScope(ring) }',
    replace: 'ring }',
    tests: alarms,
  },
  {
    name: 'breath: those that were refused',
    guard: 'A handler that was not started in this turn of the event loop is started in the next.',
    file: 'runtime/breath.ts',
    find: '    for (const again of all) again()\n',
    replace: '',
    tests: ['runtime/breath.test.ts'],
  },
  {
    name: 'breath: no turn told',
    guard: 'Something that is answered is a turn, too: false timers keep no handler from being started.',
    file: 'runtime/works.ts',
    find: '    breath.turned()\n',
    replace: '',
    tests: ['tests/integration/false-timers.test.ts'],
    timeoutMs: 8_000,
  },
]
