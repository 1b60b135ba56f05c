/** How many subagents of one conversation work at the same time: those of its runs, and apart from them those in the background. */
import { Queue } from '../../lib/queue.ts'
import type { Settings } from '../../state/settings.ts'
import { limitsOf } from './definitions.ts'

export class WorkingPlaces {
  readonly ofRuns: Queue
  readonly inBackground: Queue

  constructor(settings: Settings) {
    const limit = limitsOf(settings).maxConcurrent
    this.ofRuns = new Queue({ limit })
    this.inBackground = new Queue({ limit })
  }

  /** The settings have changed. Subagents that work continue, also above a lower limit. */
  update(settings: Settings): void {
    const { maxConcurrent } = limitsOf(settings)
    this.ofRuns.limit = maxConcurrent
    this.inBackground.limit = maxConcurrent
  }
}
