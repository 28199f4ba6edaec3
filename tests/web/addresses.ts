// Where the tests' two servers listen.
export const headed = "http://localhost:8190/";
export const bare = "http://localhost:8191/"; // without the policy header
