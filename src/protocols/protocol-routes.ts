/** The routes of the protocols besides the API, by the names that settings have for them. */
import { agUiRoutes } from './ag-ui/ag-ui-routes.ts'
import { aiSdkRoutes } from './ai-sdk/routes.ts'
import { openAiRoutes } from './openai/routes.ts'

export const PROTOCOL_ROUTES = { openai: openAiRoutes, 'ai-sdk': aiSdkRoutes, 'ag-ui': agUiRoutes }
