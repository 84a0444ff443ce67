const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Says which signal it was, and what a shell expects as the exit code of its death. */
export class Interrupted extends Error {
  readonly exitCode: number

  constructor(signal: (typeof signals)[number]) {
    super(`interrupted by ${signal}`)
    this.exitCode = 128 + { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 }[signal]
  }
}

/** Ctrl-C aborts the signal instead of ending the process, so that the work can clean up behind itself; once more ends it at once. */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  const interrupt = (name: NodeJS.Signals): void => {
    leave()
    controller.abort(new Interrupted(name as (typeof signals)[number]))
  }
  const leave = (): void => {
    for (const name of signals) process.off(name, interrupt)
  }
  for (const name of signals) process.on(name, interrupt)
  try {
    return await work(controller.signal)
  } finally {
    leave()
  }
}
