import type { Lifecycle } from './lifecycle.ts'

/**
 * A lifecycle that is loaded when it is first needed, so that a service that only publishes does not carry it. Calls are carried out in the order
 * in which they were made, those made before it was loaded included.
 */
export function lazyLifecycle(load: () => Promise<Lifecycle>): Lifecycle {
  let loading: Promise<Lifecycle> | null = null
  let loaded: Lifecycle | null = null
  const use = (): Promise<Lifecycle> => {
    loading ??= load().then((lifecycle) => {
      loaded = lifecycle
      return lifecycle
    })
    return loading
  }
  return {
    start: async () => (loaded ?? (await use())).start(),
    // Without a start there is nothing to stop. No await more than in start: a start that follows must come second.
    async stop() {
      if (loading === null) return
      try {
        await (loaded ?? (await use())).stop()
      } catch {
        // It could not be loaded.
      }
    },
    run: async (options) => (loaded ?? (await use())).run(options),
    drain: async (options) => (loaded ?? (await use())).drain(options),
    ping: async (options) => (loaded ?? (await use())).ping(options),
    health: () => loaded?.health() ?? notLoaded(loading !== null),
  }
}

function notLoaded(isLoading: boolean): ReturnType<Lifecycle['health']> {
  return { ok: false, reasons: [isLoading ? 'it is starting' : 'it is not running'] }
}
