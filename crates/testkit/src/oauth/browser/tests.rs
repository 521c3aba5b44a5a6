use super::*;

#[test]
fn the_first_form_is_read_with_its_fields_and_one_button() {
    let page = r#"<p>x</p><form data-action="no" autocomplete="off" action="/a?b=1&amp;c=2" method="POST">
        <input required type="text" name="login" value=""><input type='hidden' name='prompt' value='a &quot;b&quot;'/>
        <input type="checkbox" name="remember"><input type="checkbox" name="agree" value="yes" checked>
        <button name="go" value="yes">Go</button><button name="go" value="no">No</button></form><form action="/z"></form>"#;
    let form = Form::first(page).unwrap().filled(&Browser::default().fields);
    let fields = [("login", "alice"), ("prompt", "a \"b\""), ("agree", "yes"), ("go", "yes")];
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    assert_eq!(form, Form { action: "/a?b=1&c=2".to_owned(), post: true, fields });
    assert_eq!(Form::first("<p>no form</p>"), None);
}

#[test]
fn a_cookie_goes_to_its_host_and_path_until_it_is_taken_back() {
    let reply = |cookies: &[&str]| Reply {
        status: 200,
        headers: cookies.iter().map(|cookie| ("set-cookie".to_owned(), (*cookie).to_owned())).collect(),
        body: Vec::new(),
    };
    let mut cookies = Cookies::default();
    let url = |text: &str| Url::parse(text).unwrap();
    cookies.take(&url("http://127.0.0.1:1/a"), &reply(&["a=1; Path=/in; HttpOnly", "b=2"]));
    assert_eq!(cookies.of(&url("http://127.0.0.1:2/in/side")), "b=2; a=1");
    assert_eq!(cookies.of(&url("http://127.0.0.1:2/inside")), "b=2");
    assert_eq!(cookies.of(&url("http://localhost:1/in")), "");
    cookies.take(&url("http://127.0.0.1:1/a"), &reply(&["b=; Path=/; Max-Age=0"]));
    assert_eq!(cookies.of(&url("http://127.0.0.1:2/x")), "");
}
