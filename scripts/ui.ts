/** Builds the dashboard for a server that runs from the sources, unless it is newer than they are. */
import { provideDashboard } from './ui/build-page.ts'

await provideDashboard()
