// The TypeScript client that openapi-generator has written: a list, and the typed error of an unknown document.
import { ActionFailureFromJSON, AgentDataApi, Configuration, type ResponseError } from "./generated";

async function main(basePath: string): Promise<void> {
  const api = new AgentDataApi(new Configuration({ basePath }));
  const { children } = await api.agentDataListChildren();
  console.log(children.map((each) => each.documentId));
  const request = { agentDataListAncestorsRequest: { documentId: "nope" } };
  const failure = await api
    .agentDataListAncestors(request)
    .catch(async (error: ResponseError) => error.response.json());
  const { error } = ActionFailureFromJSON(failure);
  console.log(error.code, error.guidance);
}

main(process.argv[2]);
