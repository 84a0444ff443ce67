import { LazyController } from './lazy-controller.ts'

/** Gives each delivery a signal of its own. */
export interface Signals {
  /** For a delivery that begins. It is aborted with all others, until it has ended. */
  begin(): LazyController
  end(controller: LazyController): void
  during<T>(work: (controller: LazyController) => Promise<T>): Promise<T>
}

/**
 * One signal for all deliveries would collect the listeners of every handler that ever ran; one listener per delivery on a shared
 * signal makes Node warn of a leak. So: one listener here, and a set of those that run.
 */
export function createSignals(abandon: AbortSignal): Signals {
  const running = new Set<LazyController>()
  abandon.addEventListener(
    'abort',
    () => {
      for (const controller of running) controller.abort(abandon.reason)
    },
    { once: true },
  )
  const begin = (): LazyController => {
    const controller = new LazyController()
    if (abandon.aborted) controller.abort(abandon.reason)
    running.add(controller)
    return controller
  }
  const end = (controller: LazyController): void => void running.delete(controller)
  return {
    begin,
    end,
    async during(work) {
      const controller = begin()
      try {
        return await work(controller)
      } finally {
        end(controller)
      }
    },
  }
}
