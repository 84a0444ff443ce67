/** Gives each delivery a signal of its own. */
export interface Signals {
  during<T>(work: (controller: AbortController) => Promise<T>): Promise<T>
}

/**
 * One signal for all deliveries would collect the listeners of every handler that ever ran; one listener per delivery on a shared
 * signal makes Node warn of a leak. So: one listener here, and a set of those that run.
 */
export function createSignals(abandon: AbortSignal): Signals {
  const running = new Set<AbortController>()
  abandon.addEventListener(
    'abort',
    () => {
      for (const controller of running) controller.abort(abandon.reason)
    },
    { once: true },
  )
  return {
    async during(work) {
      const controller = new AbortController()
      if (abandon.aborted) controller.abort(abandon.reason)
      running.add(controller)
      try {
        return await work(controller)
      } finally {
        running.delete(controller)
      }
    },
  }
}
